/** Text of a body that comes in pieces, cut at a limit. */
export class BoundedText {
  readonly #maxBytes: number;
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns whether the limit is not reached yet */
  add(piece: Uint8Array): boolean {
    this.#pieces.push(piece);
    this.#bytes += piece.byteLength;
    return this.#bytes < this.#maxBytes;
  }

  get text(): string {
    return Buffer.concat(this.#pieces).subarray(0, this.#maxBytes).toString('utf8');
  }
}
