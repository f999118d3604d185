/** The part of a BodyBudget that one request's body uses. `release` and `close` are idempotent. */
export interface BodyShare {
  /** Counts arriving bytes. @throws the budget's refusal when they exceed it together with other bodies */
  grew(bytes: number): void;
  /** Gives the bytes back; bytes that still arrive are counted until `close`. */
  release(): void;
  /** Releases, and stops counting. */
  close(): void;
}

/** Byte budget for all request bodies that a process holds, unfinished ones included. */
export class BodyBudget {
  readonly #limitBytes: number;
  readonly #refusal: Error;
  #bufferedBytes = 0;

  /** @param refusal thrown without capacity; one instance, since an error's stack costs more than the refusal */
  constructor(limitBytes: number, refusal: Error) {
    this.#limitBytes = limitBytes;
    this.#refusal = refusal;
  }

  /**
   * @param announcedBytes decides whether reading begins, and is not counted: a few connections could use up the budget with bytes they
   * never send
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

  /** A single body is always admitted: a limit below the largest body would refuse it for ever. */
  #assertCapacity(bytes: number, own: number): void {
    if (this.#bufferedBytes > own && this.#bufferedBytes + bytes > this.#limitBytes) throw this.#refusal;
  }
}
