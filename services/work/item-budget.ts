/** Byte budget of the request bodies in flight for one kind of call. */
export class BodyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns a function that releases the bytes, called once; null when the budget is exhausted */
  acquire(bytes: number): (() => void) | null {
    // Otherwise a body larger than the budget would never be accepted.
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) return null;
    this.#bytes += bytes;
    return () => {
      this.#bytes -= bytes;
    };
  }
}
