import { createParser } from 'eventsource-parser';

export interface SseEvent {
  /** The `event:` field; null when the event has none. */
  event: string | null;
  /** All `data:` lines of the event, joined by newlines. */
  data: string;
}

/** What the server says of a line that is too long is of no use to anybody: the caller decides how to put it. */
export class SseOverflow extends Error {
  override readonly name = 'SseOverflow';
}

/**
 * Reads server-sent events from the bytes of a response: one batch per network read, so that no event costs a turn of the event loop.
 * A batch is empty when the bytes completed no event (a comment, a part of a line): the caller learns that the server is alive.
 * An event that the end of the body cuts off before its empty line is given too.
 *
 * @param maxEventChars ceiling on one event, and so on what is held back between two reads
 * @throws SseOverflow when an event is longer, and whatever `chunks` throws
 */
export async function* readSse(
  chunks: AsyncIterable<Uint8Array>,
  { maxEventChars }: { maxEventChars: number },
): AsyncGenerator<readonly SseEvent[], void, void> {
  let batch: SseEvent[] = [];
  let overflowed = false;
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: ({ event, data }) => batch.push({ event: event ?? null, data }),
    onError: ({ type }) => {
      // Fields that are not of the standard are passed over, as the standard wants it.
      if (type === 'max-buffer-size-exceeded') overflowed = true;
    },
  });
  const decoder = new TextDecoder();
  const feed = (text: string): SseEvent[] => {
    parser.feed(text);
    if (overflowed) throw new SseOverflow(`an event is longer than ${maxEventChars} characters`);
    const complete = batch;
    batch = [];
    return complete;
  };
  for await (const chunk of chunks) yield feed(decoder.decode(chunk, { stream: true }));
  const rest = feed(`${decoder.decode()}\n\n`);
  if (rest.length > 0) yield rest;
}
