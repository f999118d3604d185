import { AsyncResource } from 'node:async_hooks';

/** Node's timers are limited to 2^31 − 1 ms. */
const LONGEST_WAIT_MS = 3_600_000;

/** One unref'd timer for the earliest of many deadlines, by `performance.now()`. */
export class DeadlineTimer {
  readonly #onDue: () => number;
  #timer: NodeJS.Timeout | null = null;
  #dueAt = Number.POSITIVE_INFINITY;

  /**
   * @param onDue handles all that is due and returns the earliest remaining deadline, Infinity when there is none. Runs in the constructor's
   * asynchronous context: a timer's own would be that of an arbitrary caller, such as a finished transaction
   */
  constructor(onDue: () => number) {
    this.#onDue = AsyncResource.bind(onDue);
  }

  /** Calls `onDue` at this instant or earlier. Early calls are harmless, so postponed deadlines need not be reported. */
  schedule(instant: number): void {
    if (instant >= this.#dueAt) return;
    this.clear();
    this.#dueAt = instant;
    const waitMs = Math.min(Math.max(Math.ceil(instant - performance.now()), 0), LONGEST_WAIT_MS);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.schedule(this.#onDue());
    }, waitMs).unref();
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
