import { AsyncResource } from 'node:async_hooks';

/** The longest a timer of Node can wait is 2^31 − 1 ms; past an hour it just looks again. */
const LONGEST_WAIT_MS = 3_600_000;

/** One timer for the earliest of any number of deadlines, on the process's own steady clock (`performance.now()`). It keeps no process alive. */
export class DeadlineTimer {
  readonly #onDue: () => number;
  #timer: NodeJS.Timeout | null = null;
  #dueAt = Number.POSITIVE_INFINITY;

  /**
   * @param onDue handles all that is due and returns the earliest deadline left, Infinity when there is none. It runs in the asynchronous
   *   context in which this was made: a timer's own would be that of whoever happened to set it, a transaction that is long over, say
   */
  constructor(onDue: () => number) {
    this.#onDue = AsyncResource.bind(onDue);
  }

  /** Makes sure to look at this instant. An earlier look that turns out to be needless costs nothing, so deadlines that move away are not reported. */
  lookAt(instant: number): void {
    if (instant >= this.#dueAt) return;
    this.clear();
    this.#dueAt = instant;
    const waitMs = Math.min(Math.max(Math.ceil(instant - performance.now()), 0), LONGEST_WAIT_MS);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.lookAt(this.#onDue());
    }, waitMs).unref();
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
