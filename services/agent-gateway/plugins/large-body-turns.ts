/** Parsing and validating a body of this size takes up to 10 ms; one of 1 MiB, 100 ms and more. */
const LARGE_BYTES = 65_536;

/**
 * Handles one large body per tick, in order of arrival. Bodies of many clients may complete in the same tick: fifty of 1 MiB blocked the event loop for 3.4 s
 * of CPU, and no health probe was answered.
 */
export class LargeBodyTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #takeNext = () => {
    const handle = this.#waiting.shift();
    // Scheduled first, so that a throwing handler does not stop the queue. Runs in the next tick.
    if (this.#waiting.length > 0) setImmediate(this.#takeNext);
    handle?.();
  };

  /** @param handle called synchronously for a small body */
  take(sizeBytes: number, handle: () => void): void {
    if (sizeBytes < LARGE_BYTES) {
      handle();
      return;
    }
    this.#waiting.push(handle);
    if (this.#waiting.length === 1) setImmediate(this.#takeNext);
  }
}
