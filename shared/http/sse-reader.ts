import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';

const BYTE_ORDER_MARK = '\uFEFF';

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

export interface SseReader {
  /**
   * The events that bytes complete. None when they complete none (a comment, a part of a line): the caller learns that the server is alive.
   * @throws SseOverflow when an event is longer than allowed. Bytes that hold whole events before it give those, and the next throw
   */
  read(pieces: readonly Uint8Array[]): readonly SseEvent[];
  /** The body has ended: an event that it cuts off before its empty line is given too. @throws SseOverflow */
  end(): readonly SseEvent[];
}

/**
 * Reads server-sent events from the bytes of a response.
 *
 * @param maxEventChars ceiling on one event, and so on what is held back between two reads
 */
export function sseReader({ maxEventChars }: { maxEventChars: number }): SseReader {
  let events: SseEvent[] = [];
  let hasOverflowed = false;
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: ({ event, data }) => events.push({ event: event ?? null, data }),
    onError: ({ type }) => {
      // Fields that are not of the standard are passed over, as the standard wants it.
      if (type === 'max-buffer-size-exceeded') hasOverflowed = true;
    },
  });
  // Not a TextDecoder: to make one, and to have it read pieces, costs several times as much.
  const decoder = new StringDecoder('utf8');
  let hasBegun = false;
  /** Without the byte order mark that may stand before all else. */
  const decoded = (text: string): string => {
    if (hasBegun || text === '') return text;
    hasBegun = true;
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  };
  const complete = (): readonly SseEvent[] => {
    if (hasOverflowed && events.length === 0) throw new SseOverflow(`an event is longer than ${maxEventChars} characters`);
    const given = events;
    events = [];
    return given;
  };
  return {
    read(pieces) {
      for (const piece of pieces) if (!hasOverflowed) parser.feed(decoded(decoder.write(piece)));
      return complete();
    },
    end() {
      if (!hasOverflowed) parser.feed(`${decoded(decoder.end())}\n\n`);
      return complete();
    },
  };
}
