import { AsyncResource } from 'node:async_hooks';

/** Node's timers are limited to 2^31 − 1 ms; a longer wait is renewed each hour. */
const LONGEST_WAIT_MS = 3_600_000;

/** One unref'd timer for the earliest of any number of deadlines, by `performance.now()`. */
export class DeadlineTimer {
  readonly #onDue: () => number;
  #timer: NodeJS.Timeout | null = null;
  #dueAt = Number.POSITIVE_INFINITY;

  /**
   * @param onDue handles all that is due and returns the earliest remaining deadline, Infinity when there is none. It runs in the asynchronous
   * context of this constructor: a timer's own context would be that of an arbitrary caller, such as a finished transaction
   */
  constructor(onDue: () => number) {
    this.#onDue = AsyncResource.bind(onDue);
  }

  /** Schedules a call of `onDue` at this instant or earlier. A needless early call is harmless, so postponed deadlines need not be reported. */
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
