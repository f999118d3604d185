/** Parsing and validating this takes up to 10 ms; 1 MiB, 100 ms and more. */
const LARGE_BYTES = 65_536;

/**
 * Handles one large body per tick, first in, first out: fifty of 1 MiB in one tick blocked the event loop for 3.4 s of CPU, and no health probe was answered.
 */
export class LargeBodyQueue {
  readonly #waiting: (() => void)[] = [];
  readonly #runNext = () => {
    const handle = this.#waiting.shift();
    // First, so that a throwing handler does not stop the queue.
    if (this.#waiting.length > 0) setImmediate(this.#runNext);
    handle?.();
  };

  /** @param handle called synchronously for a small body */
  run(sizeBytes: number, handle: () => void): void {
    if (sizeBytes < LARGE_BYTES) {
      handle();
      return;
    }
    this.#waiting.push(handle);
    if (this.#waiting.length === 1) setImmediate(this.#runNext);
  }
}
