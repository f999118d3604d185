import { createParser } from 'eventsource-parser';

export interface SseEvent {
  /** The `event:` field; null: none. */
  event: string | null;
  /** All `data:` lines, joined by newlines. */
  data: string;
}

/** An event is longer than allowed. The caller words the public error. */
export class SseOverflow extends Error {
  override readonly name = 'SseOverflow';
}

/** An incremental parser of one event stream. */
export interface SseReader {
  /**
   * The events that a piece completes; none for a comment or part of a line, which still show that the server is alive.
   * @throws SseOverflow when an event is too long; complete events before it are returned first, and the next call throws
   */
  read(piece: Uint8Array): readonly SseEvent[];
  /** At the end of the body; returns an event without its empty line, too. @throws SseOverflow */
  end(): readonly SseEvent[];
}

/**
 * Parses server-sent events from a response's bytes. Fast path: pieces of whole one-line events, the usual case, are sliced. Other
 * responses get a full parser.
 *
 * @param maxEventChars limit of one event, and so of the buffer between reads
 */
export function sseReader({ maxEventChars }: { maxEventChars: number }): SseReader {
  return new PieceReader(maxEventChars);
}

class PieceReader implements SseReader {
  readonly #maxEventChars: number;
  #parser: AnyEvents | null = null;
  /** Whether the parser has part of an event. */
  #isWithin = false;

  constructor(maxEventChars: number) {
    this.#maxEventChars = maxEventChars;
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
const NAME_FIELD = 'event: ';
const NEWLINE = 10;
/** The letters d and e: `data`, `event`. */
const FIRST_OF_FIELD = 100;
const FIRST_OF_NAME = 101;

/** Ends an event, and no multi-byte character is cut. */
function endsEvent(piece: Uint8Array): boolean {
  return piece.length > 2 && piece[piece.length - 1] === NEWLINE && piece[piece.length - 2] === NEWLINE;
}

/** Adds the events of a piece of whole events with one `data` line each, named or not. @returns false for any other piece, with nothing added */
function readPlain(piece: Uint8Array, events: SseEvent[]): boolean {
  if ((piece[0] !== FIRST_OF_FIELD && piece[0] !== FIRST_OF_NAME) || !endsEvent(piece)) return false;
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString();
  if (text.includes('\r')) return false;
  const before = events.length;
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n\n', at);
    const name = nameAt(text, at);
    const dataAt = name === null ? at : at + NAME_FIELD.length + name.length + 1;
    if (name === '' || end !== text.indexOf('\n', dataAt) || !text.startsWith(FIELD, dataAt)) {
      events.length = before;
      return false;
    }
    events.push({ event: name, data: text.slice(dataAt + FIELD.length, end) });
    at = end + 2;
  }
  return true;
}

/** The name in an event's first line; null: that line is another field. */
function nameAt(text: string, at: number): string | null {
  return text.startsWith(NAME_FIELD, at) ? text.slice(at + NAME_FIELD.length, text.indexOf('\n', at)) : null;
}

/** Completed events are added to `events`. */
interface AnyEvents {
  feed(piece: Uint8Array, events: SseEvent[]): void;
  end(events: SseEvent[]): void;
  /** True: further bytes are ignored. */
  hasOverflowed(): boolean;
}

/** The full parser: every form of the standard, split anywhere. */
function anyEvents(maxEventChars: number): AnyEvents {
  let complete: SseEvent[] = [];
  let hasOverflowed = false;
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: ({ event, data }) => complete.push({ event: event ?? null, data }),
    onError: ({ type }) => {
      // Unknown fields are ignored, as the standard demands.
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
