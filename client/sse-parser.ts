/** One event of a stream; `id` is of this event alone, null without one. */
export interface SseEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Characters of an event. The largest message is 1 MiB, of which JSON may make six times as much. */
const MAX_EVENT_CHARACTERS = 16 * 1_024 * 1_024;

/**
 * Parses `text/event-stream`, in pieces of any size: lines end with LF, CRLF or CR.
 *
 * @throws RangeError from `feed` for an event that is too large
 */
export class SseParser {
  #line = '';
  #lastWasCr = false;
  #isFirst = true;
  #id: string | null = null;
  #event = '';
  #data: string[] = [];
  #characters = 0;

  /** @returns the events that are complete with this piece */
  feed(piece: string): SseEvent[] {
    const events: SseEvent[] = [];
    let text = this.#lastWasCr && piece.startsWith('\n') ? piece.slice(1) : piece;
    if (piece !== '') this.#lastWasCr = piece.endsWith('\r');
    if (this.#isFirst && text !== '') {
      this.#isFirst = false;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    const lines = text.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? '';
    for (const line of lines) {
      const event = this.#take(this.#line + line);
      this.#line = '';
      if (event !== null) events.push(event);
    }
    this.#line += rest;
    this.#count(rest.length);
    return events;
  }

  /** @returns the event that an empty line ends */
  #take(line: string): SseEvent | null {
    if (line === '') return this.#dispatch();
    this.#count(line.length);
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    // A comment has an empty name; other fields mean nothing here.
    return null;
  }

  #dispatch(): SseEvent | null {
    const event = this.#data.length === 0 ? null : { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') };
    this.#id = null;
    this.#event = '';
    this.#data = [];
    this.#characters = 0;
    return event;
  }

  #count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_EVENT_CHARACTERS) throw new RangeError(`an event has more than ${MAX_EVENT_CHARACTERS} characters`);
  }
}
