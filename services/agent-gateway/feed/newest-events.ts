import { limits } from '../limits.ts';
import type { LoggedEvent } from './session-log.ts';

/**
 * The end of a session's log as far as its notices have told it: without a gap, up to the feed's head. Who posts and then polls asks for what
 * was told a moment before, and needs no query for it.
 */
export class NewestEvents {
  #events: LoggedEvent[] = [];
  #characters = 0;

  /** All events from an offset on; null when they begin before what is kept. */
  from(offset: number): readonly LoggedEvent[] | null {
    const [oldest] = this.#events;
    if (oldest === undefined || offset < oldest.offset) return null;
    return this.#events.slice(offset - oldest.offset);
  }

  /** Takes in what follows in the log. What does not follow begins anew. */
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
