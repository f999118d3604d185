import type { ChatRequest } from '../contracts/router/chat-request.ts';
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
  images: number;
  recordings: number;
  /** Of pictures, for endpoints that count them as part of the prompt. */
  imageTokens: number;
  recordingTokens: number;
}

export function promptSizeOf(request: ChatRequest): PromptSize {
  const { images, recordings, recordingChars } = piecesIn(request);
  let chars = 0;
  let extraBytes = 0;
  const add = (text: string) => {
    chars += text.length;
    extraBytes += Buffer.byteLength(text, 'utf8') - text.length;
  };
  for (const text of textsOf(request)) add(text);
  const leastChars = chars;
  for (const text of filesOf(request)) add(text);
  return {
    textTokens: Math.ceil(chars / CHARS_PER_TOKEN) + Math.ceil(extraBytes / EXTRA_BYTES_PER_TOKEN),
    leastTextTokens: Math.ceil(leastChars / MOST_CHARS_PER_TOKEN),
    images,
    recordings,
    imageTokens: images * TOKENS_PER_IMAGE,
    recordingTokens: Math.ceil(recordingChars / RECORDING_CHARS_PER_TOKEN),
  };
}

/** Whatever a provider may count as prompt. */
function* textsOf({ messages, tools, response_format: format }: ChatRequest): Iterable<string> {
  for (const { content, ...rest } of messages) {
    if (typeof content === 'string') yield content;
    else
      for (const item of content ?? [])
        if (item.type !== 'image_url' && item.type !== 'input_audio' && item.type !== 'file') yield item.type === 'text' ? item.text : JSON.stringify(item);
    // Tool calls, names and reasoning that is sent back.
    if (Object.keys(rest).length > 1) yield JSON.stringify(rest);
  }
  if (tools !== undefined) yield JSON.stringify(tools);
  if (format !== undefined) yield JSON.stringify(format);
}

/** Their base64 may have many more characters than what a model reads of it. */
function* filesOf({ messages }: ChatRequest): Iterable<string> {
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const item of content) if (item.type === 'file') yield JSON.stringify(item);
  }
}
