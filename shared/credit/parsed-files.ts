import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { askedParsing } from '../prompts/asked-parsing.ts';
import { nanoOfUsd } from './nano-usd.ts';

/** Of one file. */
export const MAX_FILE_PAGES = 500;
/** That an engine has found in it, for models that take pictures. */
export const MAX_FILE_PICTURES = 8;
/** Of a file at an address, whose length is not known before it is fetched: an estimate. That of a file in the request is counted by its characters. */
const TOKENS_PER_FETCHED_FILE = 25_000;
/** Of the marks around the text of a file, which have its hash twice. Its name is counted with the request. */
const TOKENS_OF_MARKS = 50;
const WEB_URL = /^https?:\/\//i;

/** What the reading of a request's files adds at most. */
export interface WorstParsing {
  /** To the prompt, by an estimate. */
  tokens: number;
  /** Of the engine, in billionths of a US dollar. */
  costNano: bigint;
  /** In the prompt. */
  pictures: number;
}

/** The engine of the router's file. */
export interface PricedOcr {
  name: string;
  /** US dollars per page. */
  price: string;
  /** Without `images` its answers have no pictures. */
  response?: { images?: string | undefined };
}

const NOTHING: WorstParsing = { tokens: 0, costNano: 0n, pictures: 0 };

/** @param ocr the engine of the router's file; absent: there is none */
export function worstParsingOf(request: ChatRequest, ocr: PricedOcr | undefined): WorstParsing {
  const asked = askedParsing(request);
  if (asked === null) return NOTHING;
  const addresses = request.messages.flatMap(({ content }) =>
    Array.isArray(content)
      ? content.flatMap((item) => (item.type === 'file' && item.file.file_data !== undefined ? [WEB_URL.test(item.file.file_data)] : []))
      : [],
  );
  const fetched = addresses.filter(Boolean).length;
  const engine = ocr !== undefined && asked.engine === ocr.name ? ocr : null;
  const pricePerPage = engine === null ? 0n : BigInt(nanoOfUsd(Number(engine.price)));
  const pictures = engine?.response?.images === undefined ? 0 : addresses.length * MAX_FILE_PICTURES;
  const tokens = fetched * TOKENS_PER_FETCHED_FILE + addresses.length * TOKENS_OF_MARKS;
  return { tokens, costNano: BigInt(addresses.length * MAX_FILE_PAGES) * pricePerPage, pictures };
}
