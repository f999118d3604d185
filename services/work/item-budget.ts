/** Byte budget of the items' bodies in flight, for one kind. */
export class ItemBudget {
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
