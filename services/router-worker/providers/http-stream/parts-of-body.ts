import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type SseEvent, sseReader } from '#shared/http/sse-reader.ts';
import type { AnswerProgress, AnswerReader } from '../http-stream.ts';
import { BoundedText } from './bounded-text.ts';

/** Of one event or whole answer; a data URL of a generated image fits. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/** Turns the events of one answer into parts. */
export interface EventReader extends AnswerProgress {
  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[];
  /** An unstreamed answer, one JSON body; ends it. */
  readWhole(body: string): ProviderPart[];
  /** As of `AnswerReader`. */
  lastParts?(): ProviderPart[];
}

/** Reads server-sent events, or the JSON body that some servers send to a stream request. */
export function sseAnswer(reader: EventReader, contentType: string): AnswerReader {
  const partsOf = contentType.includes('application/json') ? partsOfWhole(reader) : partsOfStream(reader);
  return { progress: reader, partsOf, lastParts: () => reader.lastParts?.() ?? [] };
}

export function partsOfStream(reader: EventReader): AnswerReader['partsOf'] {
  const sse = sseReader({ maxEventChars: MAX_EVENT_CHARS });
  return (piece) => reader.readEvents(piece === null ? sse.end() : sse.read(piece));
}

/** An answer that is one JSON body. */
export function partsOfWhole(reader: Pick<EventReader, 'ended' | 'readWhole'>): AnswerReader['partsOf'] {
  const body = new BoundedText(MAX_EVENT_CHARS);
  return (piece) => {
    if (reader.ended || (piece !== null && body.add(piece))) return [];
    return reader.readWhole(body.text);
  };
}
