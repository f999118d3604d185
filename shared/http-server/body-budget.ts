/** The bytes of one request's body. Both ways to end it may be repeated. */
export interface BodyShare {
  /** So many more bytes have arrived. @throws the budget's refusal when there is no capacity for them beside those of other bodies */
  grew(bytes: number): void;
  /** The process no longer holds the body. What still arrives is counted again until `close`. */
  release(): void;
  /** The request is over: what still arrives is not held. */
  close(): void;
}

/** Bounds the bytes of all request bodies that a process holds, unfinished ones included. */
export class BodyBudget {
  readonly #limitBytes: number;
  readonly #refusal: Error;
  #bufferedBytes = 0;

  /** @param refusal thrown when there is no capacity: made once, since the stack of a new error costs more than the refusal itself */
  constructor(limitBytes: number, refusal: Error) {
    this.#limitBytes = limitBytes;
    this.#refusal = refusal;
  }

  /**
   * @param announcedBytes the size of the body as far as it is known. It only decides whether reading begins; counted is what arrives, or a
   *   few connections that announce much and send nothing would use up the budget.
   * @throws the budget's refusal
   */
  open(announcedBytes: number): BodyShare {
    this.#assertCapacity(announcedBytes, 0);
    let buffered = 0;
    let isOpen = true;
    const release = () => {
      this.#bufferedBytes -= buffered;
      buffered = 0;
    };
    return {
      grew: (bytes) => {
        this.#assertCapacity(bytes, buffered);
        if (!isOpen) return;
        buffered += bytes;
        this.#bufferedBytes += bytes;
      },
      release,
      close: () => {
        isOpen = false;
        release();
      },
    };
  }

  /** One body is always read: a limit below the largest body would refuse that one for ever. */
  #assertCapacity(bytes: number, own: number): void {
    if (this.#bufferedBytes > own && this.#bufferedBytes + bytes > this.#limitBytes) throw this.#refusal;
  }
}
