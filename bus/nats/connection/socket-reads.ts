/** A connection's reads for one reader. A generator would cost four promises and three wake-ups per read. */
export class SocketReads implements AsyncIterableIterator<Uint8Array> {
  readonly #unread: Uint8Array[] = [];
  #wake: ((result: IteratorResult<Uint8Array>) => void) | null = null;

  add(bytes: Uint8Array): void {
    const wake = this.#wake;
    this.#wake = null;
    if (wake === null) this.#unread.push(bytes);
    else wake({ value: bytes, done: false });
  }

  /** Never ends, even on a closed connection. */
  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#unread.shift();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
