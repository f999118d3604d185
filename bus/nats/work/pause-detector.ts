const TICK_MS = 250;
/** Past it the process was stopped or its event loop blocked; shorter pauses go undetected. */
export const PAUSE_MS = 500;
/** What arrived during a pause is read within this time: sockets hold little, and are read first. */
const CATCH_UP_MS = 500;

/** Detects pauses of this process. What is read after one may have been delivered at any time since its beginning: leases count from there. */
export class PauseDetector {
  readonly #ticks = setInterval(() => this.#detect(), TICK_MS).unref();
  #tickedAt = performance.now();
  /** `unreadSince` is the beginning of the pause before, if what arrived in that may be unread. Of no earlier one: sockets are read between them. */
  #last = { beganAt: 0, unreadSince: 0, readUntil: 0 };

  /** The earliest possible delivery of what is read now, by `performance.now()`. */
  deliveredSince(): number {
    const now = this.#detect();
    return now < this.#last.readUntil ? this.#last.unreadSince : now;
  }

  stop(): void {
    clearInterval(this.#ticks);
  }

  #detect(): number {
    const now = performance.now();
    if (now - this.#tickedAt > PAUSE_MS) {
      const beganAt = this.#tickedAt;
      this.#last = { beganAt, unreadSince: beganAt < this.#last.readUntil ? this.#last.beganAt : beganAt, readUntil: now + CATCH_UP_MS };
    }
    this.#tickedAt = now;
    return now;
  }
}
