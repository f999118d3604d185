import type { ServerResponse } from 'node:http';

export interface SseLimits {
  /** A client with more unread bytes is disconnected. */
  unsentBytes: number;
  /** Absent: the bytes of the largest tick are allowed beyond `unsentBytes`, so that one large event passes. */
  isStrict?: true;
  /** For a client to read the last bytes of its response. */
  finishMs: number;
}

/**
 * Writes SSE bytes to one client, corked per tick; the first bytes leave at once. A client with too many unread bytes is disconnected, since
 * there is no backpressure to the worker. Checked before each tick's first write.
 */
export class SseWriter {
  readonly #raw: ServerResponse;
  readonly #limits: SseLimits;
  readonly #onSlow: () => void;
  #corked = false;
  #tickBytes = 0;
  /** Bytes of the largest tick since the unread bytes were last within the limit. */
  #largestTickBytes = 0;

  constructor(raw: ServerResponse, limits: SseLimits, onSlow: () => void) {
    this.#raw = raw;
    this.#limits = limits;
    this.#onSlow = onSlow;
    // A reset connection emits 'close' next, which the caller handles.
    raw.on('error', () => {});
  }

  open(headers: Record<string, string>): void {
    this.#raw.writeHead(200, headers);
    this.#cork();
    // Separately: prepended to the first bytes, the head would be retained in dozens of string pieces.
    this.#raw.flushHeaders();
    // The first bytes leave before the end of the tick.
    queueMicrotask(() => this.flush());
  }

  write(bytes: Uint8Array | string): void {
    const raw = this.#raw;
    if (raw.destroyed || raw.writableEnded) return;
    if (!this.#corked) {
      if (this.#isTooSlow()) {
        raw.destroy();
        this.#onSlow();
        return;
      }
      this.#cork();
    }
    this.#tickBytes += bytes.length;
    raw.write(bytes);
  }

  /** @param last written whatever is unread */
  end(last?: string): void {
    this.flush();
    this.#raw.end(last);
    finishWithin(this.#raw, this.#limits.finishMs);
  }

  #isTooSlow(): boolean {
    const { unsentBytes, isStrict } = this.#limits;
    const unsent = this.#raw.writableLength;
    if (unsent <= unsentBytes) this.#largestTickBytes = 0;
    return unsent > unsentBytes + (isStrict === true ? 0 : this.#largestTickBytes);
  }

  #cork(): void {
    this.#corked = true;
    this.#tickBytes = 0;
    this.#raw.cork();
    setImmediate(() => this.flush());
  }

  /** Sends what is held until the end of the tick. */
  flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#largestTickBytes = Math.max(this.#largestTickBytes, this.#tickBytes);
    this.#raw.uncork();
  }
}

/**
 * Destroys the connection when an ended response is not read within `finishMs`: it would hold its bytes. Call it after the last write,
 * when the kernel mostly has them.
 */
export function finishWithin(raw: ServerResponse, finishMs: number): void {
  if (raw.closed || (raw.writableEnded && raw.writableLength === 0)) return;
  const timer = setTimeout(() => raw.destroy(), finishMs);
  raw.once('close', () => clearTimeout(timer));
}
