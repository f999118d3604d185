/** Parsing a body of this size and checking it against a schema takes up to some 10 ms; one of the largest size, 100 ms and more. */
const LARGE_BYTES = 65_536;

/**
 * Handles large bodies one in a turn of the event loop, in the order in which they came. The bodies of many clients may be complete in
 * the same turn: fifty of 1 MiB held the event loop for 3.4 s of CPU, and no health probe was answered.
 */
export class LargeBodyTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #takeNext = () => {
    const handle = this.#waiting.shift();
    // First, so that those behind it go on whatever comes of this one. It runs in the next turn.
    if (this.#waiting.length > 0) setImmediate(this.#takeNext);
    handle?.();
  };

  /** @param handle called at once for a body that is not large */
  take(sizeBytes: number, handle: () => void): void {
    if (sizeBytes < LARGE_BYTES) {
      handle();
      return;
    }
    this.#waiting.push(handle);
    if (this.#waiting.length === 1) setImmediate(this.#takeNext);
  }
}
