import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { sseReader } from '#shared/http/sse-reader.ts';
import { BoundedText } from './bounded-text.ts';
import type { PartReader } from '../openai-compatible/to-parts.ts';

/** Of one event or whole answer; a data URL of a generated image fits. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/** Turns the pieces of a body into parts; null marks its end. @throws SseOverflow */
export type PartsOf = (piece: Buffer | null) => ProviderPart[];

export function partsOfStream(reader: PartReader): PartsOf {
  const sse = sseReader({ maxEventChars: MAX_EVENT_CHARS });
  return (piece) => reader.readEvents(piece === null ? sse.end() : sse.read(piece));
}

export function partsOfWhole(reader: PartReader): PartsOf {
  const body = new BoundedText(MAX_EVENT_CHARS);
  return (piece) => {
    if (reader.ended || (piece !== null && body.add(piece))) return [];
    return reader.readWhole(body.text);
  };
}
