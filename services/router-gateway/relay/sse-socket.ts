import type { ServerResponse } from 'node:http';
import type { GatewayLimits } from '../limits.ts';

/**
 * Writes SSE bytes to one client. What is written in one turn of the event loop leaves together. A client that leaves too much unread
 * is cut off, since nobody upstream waits for it; it is judged before each turn's first write, so that one large event harms nobody.
 */
export class SseSocket {
  readonly #raw: ServerResponse;
  readonly #limits: GatewayLimits;
  readonly #onSlow: () => void;
  #corked = false;

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
  }

  write(bytes: Uint8Array | string): void {
    const raw = this.#raw;
    if (raw.destroyed || raw.writableEnded) return;
    if (!this.#corked) {
      if (raw.writableLength > this.#limits.unsentBytes) {
        raw.destroy();
        this.#onSlow();
        return;
      }
      this.#corked = true;
      raw.cork();
      setImmediate(() => this.#flush());
    }
    raw.write(bytes);
  }

  /** Sends what is left and ends the answer; a client that never takes it is cut off. */
  end(): void {
    this.#flush();
    this.#raw.end();
    finishWithin(this.#raw, this.#limits.finishMs);
  }

  #flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#raw.uncork();
  }
}

/** Cuts the connection when an answer that has ended is not taken in time: it would hold its bytes for as long as the client likes. */
export function finishWithin(raw: ServerResponse, finishMs: number): void {
  if (raw.closed) return;
  const timer = setTimeout(() => raw.destroy(), finishMs);
  raw.once('close', () => clearTimeout(timer));
}
