import type { EndpointConfig } from '../config/router-config.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { deferredIn, messagesBeyondText } from '../prompts/deferred-messages.ts';
import { sizeOf, sizeOfMessages } from '../prompts/text-size.ts';
import { piecesIn } from './pieces.ts';

const CHARS_PER_TOKEN = 4;
/** Prose has fewer. */
const MOST_CHARS_PER_TOKEN = 5;
/** Extra bytes in UTF-8 per token: writing systems with three bytes per character have about a token per character. */
const EXTRA_BYTES_PER_TOKEN = 2;
/** Of a picture that has no price of its own: what vendors count for a large one. */
export const TOKENS_PER_IMAGE = 2_000;
/** Base64 of a recording that has no price of its own: a second of compressed speech is a few thousand characters, and about 30 tokens. */
const RECORDING_CHARS_PER_TOKEN = 100;

/** What a prompt may cost at most, as an estimate before it is sent. */
export interface PromptSize {
  /** Of everything but pictures and recordings. */
  textTokens: number;
  /** So many at least; files count for none. */
  leastTextTokens: number;
  /** Part of `textTokens`: files by their base64, which may have many more characters than what a model reads of them. */
  fileTokens: number;
  images: number;
  recordings: number;
  /** Of pictures, for endpoints that count them as part of the prompt. */
  imageTokens: number;
  recordingTokens: number;
}

export function promptSizeOf(request: ChatRequest): PromptSize {
  const { images, recordings, recordingChars } = piecesIn(request);
  const messages = deferredIn(request)?.size ?? sizeOfMessages(request.messages);
  const others = sizeOf(textsBesideMessages(request));
  const files = sizeOf(filesOf(request));
  const leastChars = messages.chars + others.chars;
  const extraBytes = messages.extraBytes + others.extraBytes;
  const textTokens = tokensIn(leastChars + files.chars, extraBytes + files.extraBytes);
  return {
    textTokens,
    leastTextTokens: Math.ceil(leastChars / MOST_CHARS_PER_TOKEN),
    fileTokens: textTokens - tokensIn(leastChars, extraBytes),
    images,
    recordings,
    imageTokens: images * TOKENS_PER_IMAGE,
    recordingTokens: Math.ceil(recordingChars / RECORDING_CHARS_PER_TOKEN),
  };
}

/** Of a prompt at an endpoint, where pictures and recordings with a price of their own are no tokens. Longer prompts than the context are refused. */
export function promptTokensAt({ context_length: context, prices }: Pick<EndpointConfig, 'context_length' | 'prices'>, size: PromptSize): number {
  const tokens = size.textTokens + (prices?.image === undefined ? size.imageTokens : 0) + (prices?.audio === undefined ? size.recordingTokens : 0);
  return Math.min(tokens, context ?? Number.POSITIVE_INFINITY);
}

function tokensIn(chars: number, extraBytes: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN) + Math.ceil(extraBytes / EXTRA_BYTES_PER_TOKEN);
}

function* textsBesideMessages({ tools, response_format: format }: ChatRequest): Iterable<string> {
  if (tools !== undefined) yield JSON.stringify(tools);
  if (format !== undefined) yield JSON.stringify(format);
}

function* filesOf(request: ChatRequest): Iterable<string> {
  for (const { content } of messagesBeyondText(request)) {
    if (!Array.isArray(content)) continue;
    for (const item of content) if (item.type === 'file') yield JSON.stringify(item);
  }
}
