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

export interface SseReader {
  /** Whether the next piece begins an event, whatever came before it. */
  readonly isBetweenEvents: boolean;
  /**
   * The events that a piece completes. None when it completes none (a comment, a part of a line): the caller learns that the server is alive.
   * @throws SseOverflow when an event is longer than allowed. A piece that holds whole events before it gives those, and the next throws
   */
  read(piece: Uint8Array): readonly SseEvent[];
  /** The body has ended: an event that it cuts off before its empty line is given too. @throws SseOverflow */
  end(): readonly SseEvent[];
}

/**
 * Reads server-sent events from the bytes of a response. Nearly all of them come as whole events of one line: those are cut out of their
 * text, and a parser is made, and kept, only for a response that comes in another way.
 *
 * @param maxEventChars ceiling on one event, and so on what is held back between two reads
 */
export function sseReader({ maxEventChars }: { maxEventChars: number }): SseReader {
  return new PieceReader(maxEventChars);
}

class PieceReader implements SseReader {
  readonly #maxEventChars: number;
  #parser: AnyEvents | null = null;
  /** Whether the parser holds a part of an event. */
  #isWithin = false;

  constructor(maxEventChars: number) {
    this.#maxEventChars = maxEventChars;
  }

  get isBetweenEvents(): boolean {
    return !this.#isWithin;
  }

  read(piece: Uint8Array): readonly SseEvent[] {
    const events: SseEvent[] = [];
    if (this.#isWithin || piece.byteLength > this.#maxEventChars || !readPlain(piece, events)) this.#parse(piece, events);
    return this.#orOverflow(events);
  }

  end(): readonly SseEvent[] {
    const events: SseEvent[] = [];
    this.#parser?.end(events);
    return this.#orOverflow(events);
  }

  #parse(piece: Uint8Array, events: SseEvent[]): void {
    this.#parser ??= anyEvents(this.#maxEventChars);
    this.#parser.feed(piece, events);
    this.#isWithin = this.#parser.hasOverflowed() || !endsEvent(piece);
  }

  #orOverflow(events: SseEvent[]): readonly SseEvent[] {
    if (events.length === 0 && this.#parser?.hasOverflowed() === true) throw new SseOverflow(`an event is longer than ${this.#maxEventChars} characters`);
    return events;
  }
}

const FIELD = 'data: ';
const NEWLINE = 10;
const FIRST_OF_FIELD = 100;

/** Between two events, and between two characters. */
function endsEvent(piece: Uint8Array): boolean {
  return piece.length > 2 && piece[piece.length - 1] === NEWLINE && piece[piece.length - 2] === NEWLINE;
}

/** Adds the events of a piece that holds nothing but whole ones, each of one line of data. @returns false when it is no such piece: nothing is added */
function readPlain(piece: Uint8Array, events: SseEvent[]): boolean {
  if (piece[0] !== FIRST_OF_FIELD || !endsEvent(piece)) return false;
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString();
  if (text.includes('\r')) return false;
  const before = events.length;
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n\n', at);
    const lineEnd = text.indexOf('\n', at);
    if (end !== lineEnd || !text.startsWith(FIELD, at)) {
      events.length = before;
      return false;
    }
    events.push({ event: null, data: text.slice(at + FIELD.length, end) });
    at = end + 2;
  }
  return true;
}

/** What bytes complete is added to `events`. */
interface AnyEvents {
  feed(piece: Uint8Array, events: SseEvent[]): void;
  end(events: SseEvent[]): void;
  /** Nothing is read any more. */
  hasOverflowed(): boolean;
}

/** Every form that the standard allows, cut anywhere. */
function anyEvents(maxEventChars: number): AnyEvents {
  let complete: SseEvent[] = [];
  let hasOverflowed = false;
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: ({ event, data }) => complete.push({ event: event ?? null, data }),
    onError: ({ type }) => {
      // Fields that are not of the standard are passed over, as the standard wants it.
      if (type === 'max-buffer-size-exceeded') hasOverflowed = true;
    },
  });
  const decoder = new TextDecoder();
  const feed = (text: string, events: SseEvent[]) => {
    if (hasOverflowed) return;
    complete = events;
    parser.feed(text);
  };
  return {
    feed: (piece, events) => feed(decoder.decode(piece, { stream: true }), events),
    end: (events) => feed(`${decoder.decode()}\n\n`, events),
    hasOverflowed: () => hasOverflowed,
  };
}
