import { limits } from '../limits.ts';
import type { LoggedEvent } from './session-log.ts';

/** The newest events of a log in memory, without a gap up to the feed's head. A poll right after a post needs no query. */
export class NewestEvents {
  #events: LoggedEvent[] = [];
  #characters = 0;

  /** Null when the offset is too old. */
  from(offset: number): readonly LoggedEvent[] | null {
    const [oldest] = this.#events;
    if (oldest === undefined || offset < oldest.offset) return null;
    return this.#events.slice(offset - oldest.offset);
  }

  add(events: readonly LoggedEvent[]): void {
    for (const event of events) {
      const newest = this.#events.at(-1);
      if (newest !== undefined && event.offset !== newest.offset + 1) this.clear();
      this.#events.push(event);
      this.#characters += event.text.length;
    }
    let tooMany = 0;
    while (this.#characters > limits.retainedCharacters) this.#characters -= this.#events[tooMany++]?.text.length ?? 0;
    if (tooMany > 0) this.#events.splice(0, tooMany);
  }

  clear(): void {
    this.#events = [];
    this.#characters = 0;
  }
}
