const TICK_MS = 50;

/**
 * Time in which this process was free to read its sockets, from the construction on. A tick counts as 50 ms however late it comes: work that holds the event
 * loop, such as the opening of an embedded database, also keeps it from reading answers that have arrived.
 */
export class FreeTime {
  #passedMs = 0;
  readonly #waiting = new Map<() => void, number>();
  readonly #ticks: NodeJS.Timeout;

  constructor() {
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Calls back once, at the first tick with so much time passed since the construction. Never after `stop`. */
  onceAfter(ms: number, callback: () => void): void {
    this.#waiting.set(callback, ms);
  }

  stop(): void {
    clearInterval(this.#ticks);
    this.#waiting.clear();
  }

  #tick(): void {
    this.#passedMs += TICK_MS;
    for (const [callback, ms] of this.#waiting) {
      if (this.#passedMs < ms) continue;
      this.#waiting.delete(callback);
      callback();
    }
  }
}
