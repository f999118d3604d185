import { askedParsing } from '../contracts/router/asked-parsing.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { nanoOfUsd } from './nano-usd.ts';

/** Of one file. */
export const MAX_FILE_PAGES = 500;
/** Of a file at an address, whose length is not known before it is fetched: an estimate. That of a file in the request is counted by its characters. */
const TOKENS_PER_FETCHED_FILE = 25_000;
const WEB_URL = /^https?:\/\//i;

/** What the reading of a request's files adds at most. */
export interface WorstParsing {
  /** To the prompt, by an estimate. */
  tokens: number;
  /** Of the engine, in billionths of a US dollar. */
  costNano: bigint;
}

const NOTHING: WorstParsing = { tokens: 0, costNano: 0n };

/** @param ocr the engine of the router's file; absent: there is none */
export function worstParsingOf(request: ChatRequest, ocr: { name: string; price: string } | undefined): WorstParsing {
  const asked = askedParsing(request);
  if (asked === null) return NOTHING;
  const addresses = request.messages.flatMap(({ content }) =>
    Array.isArray(content)
      ? content.flatMap((item) => (item.type === 'file' && item.file.file_data !== undefined ? [WEB_URL.test(item.file.file_data)] : []))
      : [],
  );
  const fetched = addresses.filter(Boolean).length;
  const pricePerPage = ocr !== undefined && asked.engine === ocr.name ? BigInt(nanoOfUsd(Number(ocr.price))) : 0n;
  return { tokens: fetched * TOKENS_PER_FETCHED_FILE, costNano: BigInt(addresses.length * MAX_FILE_PAGES) * pricePerPage };
}
