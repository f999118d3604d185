/** What has come of a connection, for its one reader. A generator would make four promises for each read and wake three times; this wakes once. */
export class SocketReads implements AsyncIterableIterator<Uint8Array> {
  readonly #unread: Uint8Array[] = [];
  #wake: ((result: IteratorResult<Uint8Array>) => void) | null = null;

  add(bytes: Uint8Array): void {
    const wake = this.#wake;
    this.#wake = null;
    if (wake === null) this.#unread.push(bytes);
    else wake({ value: bytes, done: false });
  }

  /** Never ends: of a connection that is closed there is nothing more to tell. */
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
