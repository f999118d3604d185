import type { ServerResponse } from 'node:http';
import { limits, type Waits } from '../limits.ts';

/** One client of an event stream, seen from the side that writes. */
export class SseClient {
  /** Resolves once nothing can be sent any more: the connection is gone, the client was dropped, or the stream was ended. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #waits: Waits;
  readonly #heartbeat: NodeJS.Timeout;
  #isOpen = true;
  /** Between two pieces of one event: nothing may come in between. */
  #isSending = false;
  #onClosed: () => void = () => {};
  #onDrained: () => void = () => {};

  /** Sends the head at once, with a comment, so that the client knows that it is connected. */
  constructor(response: ServerResponse, headers: Record<string, string>, waits: Waits) {
    this.#response = response;
    this.#waits = waits;
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve;
    });
    // A connection that breaks says so by its close, which follows.
    response.on('error', () => {});
    response.on('timeout', () => this.#onTimeout());
    response.once('close', () => this.#close());
    this.#heartbeat = setInterval(() => {
      if (!this.#isSending) this.write(': heartbeat\n\n');
    }, waits.heartbeatMs).unref();
    // Who has left already has said so before anybody listened.
    if (response.destroyed) {
      this.#close();
      return;
    }
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' });
    this.write(': connected\n\n');
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A client that has left too much unread is dropped: it resumes from what it has, and we keep no copy for it. */
  write(sse: string): void {
    if (!this.#isOpen) return;
    if (this.#response.writableLength > limits.unsentBytes) this.#drop();
    else this.#response.write(sse);
  }

  /**
   * Writes no faster than the client takes it. Resolves when it has taken nearly all, or is gone. One that takes nothing for long is
   * dropped; one that is merely slow gets even the largest event, since that goes in pieces.
   */
  async send(sse: string): Promise<void> {
    const bytes = Buffer.from(sse, 'utf8');
    this.#isSending = true;
    for (let at = 0; at < bytes.length && this.#isOpen; at += limits.ssePieceBytes) {
      this.#response.write(bytes.subarray(at, at + limits.ssePieceBytes));
      if (this.#response.writableNeedDrain) await this.#drained();
    }
    this.#isSending = false;
  }

  end(comment: string): void {
    if (!this.#isOpen) return;
    this.#close();
    // Not into the middle of an event: what is not whole is dropped by who reads it.
    const response = this.#isSending ? this.#response.end() : this.#response.end(`: ${comment}\n\n`);
    // What it has not read yet must not hold up a gateway that leaves.
    const stalled = setTimeout(() => response.destroy(), this.#waits.stalledMs).unref();
    response.once('close', () => clearTimeout(stalled));
  }

  /** Node's own timeout of a socket begins anew whenever some of what waits was sent, so only a client that takes nothing meets it. */
  async #drained(): Promise<void> {
    const response = this.#response;
    response.setTimeout(this.#waits.stalledMs);
    await new Promise<void>((resolve) => {
      const settle = () => {
        response.off('drain', settle);
        this.#onDrained = () => {};
        resolve();
      };
      response.once('drain', settle);
      this.#onDrained = settle;
    });
    response.setTimeout(0);
  }

  /**
   * Decided once the sockets were polled: behind a pause of this process its timers come first, and what the client has taken meanwhile is not
   * known before.
   */
  #onTimeout(): void {
    const awaited = this.#onDrained;
    setImmediate(() => {
      if (this.#onDrained === awaited) this.#drop();
    });
  }

  #drop(): void {
    this.#close();
    this.#response.destroy();
  }

  #close(): void {
    this.#isOpen = false;
    clearInterval(this.#heartbeat);
    this.#onClosed();
    this.#onDrained();
  }
}
