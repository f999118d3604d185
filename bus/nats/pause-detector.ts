/** How often the time is noted. */
const TICK_MS = 250;
/** Longer than this without a tick, and the process stood still: it was stopped, or something held up its event loop. What is shorter goes unseen. */
export const PAUSE_MS = 500;
/** What came meanwhile is read within this time of the awakening: sockets hold little, and are read before anything else is done. */
const CATCH_UP_MS = 500;

/**
 * Knows when this process last stood still. What it reads right after that may have been delivered at any time since it did: whoever counts
 * the time that he may keep it has to count from there.
 */
export class PauseDetector {
  readonly #ticks = setInterval(() => this.#look(), TICK_MS).unref();
  #lookedAt = performance.now();
  #last = { beganAt: 0, readUntil: 0 };

  /** The earliest time at which what is read now can have been delivered, by `performance.now()`. */
  deliveredSince(): number {
    const now = this.#look();
    return now < this.#last.readUntil ? this.#last.beganAt : now;
  }

  stop(): void {
    clearInterval(this.#ticks);
  }

  #look(): number {
    const now = performance.now();
    if (now - this.#lookedAt > PAUSE_MS) this.#last = { beganAt: this.#lookedAt, readUntil: now + CATCH_UP_MS };
    this.#lookedAt = now;
    return now;
  }
}
