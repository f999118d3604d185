/** What the calls of one kind have in hand: the bytes of their requests as they came from the queue. */
export class BodyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns what gives the room back, to be called once; null when there is none just now */
  acquire(bytes: number): (() => void) | null {
    // One body may always be taken: else a bound below the largest one would refuse it for ever.
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) return null;
    this.#bytes += bytes;
    return () => {
      this.#bytes -= bytes;
    };
  }
}
