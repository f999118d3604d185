import type { ServerResponse } from 'node:http';
import type { GatewayLimits } from '../limits.ts';

/**
 * Writes SSE bytes to one client. What is written in one turn of the event loop leaves together, but the beginning leaves at once. A client that leaves too much unread
 * is cut off, since nobody upstream waits for it; it is judged before each turn's first write, and an event that alone is too much is
 * not held against it while it leaves.
 */
export class SseSocket {
  readonly #raw: ServerResponse;
  readonly #limits: GatewayLimits;
  readonly #onSlow: () => void;
  #corked = false;
  #turnBytes = 0;
  /** The largest turn since the client had last taken enough. */
  #largestTurnBytes = 0;

  /** @param onSlow the client did not take what was sent, and its connection has been cut */
  constructor(raw: ServerResponse, limits: GatewayLimits, onSlow: () => void) {
    this.#raw = raw;
    this.#limits = limits;
    this.#onSlow = onSlow;
    // A reset connection is no news: 'close' follows, and is what the relay listens to.
    raw.on('error', () => {});
  }

  open(headers: Record<string, string>): void {
    this.#raw.writeHead(200, headers);
    this.#cork();
    // By itself: put before the first bytes, the response would keep it for as long as it lasts in the dozens of pieces that it is made of.
    this.#raw.flushHeaders();
    // The first words of an answer wait for nothing.
    queueMicrotask(() => this.#flush());
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
    this.#turnBytes += bytes.length;
    raw.write(bytes);
  }

  /** Sends what is left and ends the answer; a client that never takes it is cut off. */
  end(): void {
    this.#flush();
    this.#raw.end();
    finishWithin(this.#raw, this.#limits.finishMs);
  }

  #isTooSlow(): boolean {
    const { unsentBytes } = this.#limits;
    const unsent = this.#raw.writableLength;
    if (unsent <= unsentBytes) this.#largestTurnBytes = 0;
    return unsent > unsentBytes + this.#largestTurnBytes;
  }

  #cork(): void {
    this.#corked = true;
    this.#turnBytes = 0;
    this.#raw.cork();
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#largestTurnBytes = Math.max(this.#largestTurnBytes, this.#turnBytes);
    this.#raw.uncork();
  }
}

/**
 * Cuts the connection when an answer that has ended is not taken in time: it would hold its bytes for as long as the client likes. To be
 * asked once the last of them are written: nearly always the system has taken them by then.
 */
export function finishWithin(raw: ServerResponse, finishMs: number): void {
  if (raw.closed || (raw.writableEnded && raw.writableLength === 0)) return;
  const timer = setTimeout(() => raw.destroy(), finishMs);
  raw.once('close', () => clearTimeout(timer));
}
