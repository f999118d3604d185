/** A message has its type and its length before its body; the first one of a connection has no type. */
const KIND_BYTES = 1;
const LENGTH_BYTES = 4;
/** A simple query, and the execution of a prepared one: the messages that count as queries. */
const QUERIES = new Set(['Q'.charCodeAt(0), 'E'.charCodeAt(0)]);

/** Counts the queries that a client of PostgreSQL sends over one connection, without parsing them. */
export class QueryCount {
  count = 0;
  #head = Buffer.alloc(0);
  /** Remaining bytes of the current body. */
  #leftBytes = 0;
  #isStarted = false;

  /** @param {Buffer} bytes */
  push(bytes) {
    for (let at = 0; at < bytes.length; ) {
      const skipped = Math.min(this.#leftBytes, bytes.length - at);
      this.#leftBytes -= skipped;
      at += skipped;
      const headBytes = this.#isStarted ? KIND_BYTES + LENGTH_BYTES : LENGTH_BYTES;
      const piece = bytes.subarray(at, at + headBytes - this.#head.length);
      this.#head = Buffer.concat([this.#head, piece]);
      at += piece.length;
      if (this.#head.length < headBytes) return;
      this.#begin();
    }
  }

  #begin() {
    const kindBytes = this.#isStarted ? KIND_BYTES : 0;
    if (this.#isStarted && QUERIES.has(this.#head[0] ?? 0)) this.count += 1;
    this.#leftBytes = this.#head.readUInt32BE(kindBytes) - LENGTH_BYTES; // the length counts itself
    this.#isStarted = true;
    this.#head = Buffer.alloc(0);
  }
}
