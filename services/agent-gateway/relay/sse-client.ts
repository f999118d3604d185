import type { ServerResponse } from 'node:http';
import { limits, type Waits } from '../limits.ts';

/** Writes an event stream to one client. */
export class SseClient {
  /** Resolves once nothing more can be sent: the client disconnected, was dropped, or the stream was ended. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #waits: Waits;
  readonly #heartbeat: NodeJS.Timeout;
  #isOpen = true;
  /** Between two pieces of one event: no other write may come in between. */
  #isSending = false;
  #onClosed: () => void = () => {};
  #onDrained: () => void = () => {};

  /** Sends the head and a comment at once, so that the client knows that it is connected. */
  constructor(response: ServerResponse, headers: Record<string, string>, waits: Waits) {
    this.#response = response;
    this.#waits = waits;
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve;
    });
    // `close` follows.
    response.on('error', () => {});
    response.on('timeout', () => this.#onTimeout());
    response.once('close', () => this.#close());
    this.#heartbeat = setInterval(() => {
      if (!this.#isSending) this.write(': heartbeat\n\n');
    }, waits.heartbeatMs).unref();
    // A client that disconnected earlier emits no further `close`.
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

  /** Writes without waiting. A client with more than `limits.unsentBytes` unread is disconnected; it resumes from its last event. */
  write(sse: string): void {
    if (!this.#isOpen) return;
    if (this.#response.writableLength > limits.unsentBytes) this.#drop();
    else this.#response.write(sse);
  }

  /**
   * Writes as fast as the client reads; resolves when nearly all is read or the client has gone. A client that reads nothing for `stalledMs` is disconnected;
   * a slow one gets even the largest event, piece by piece.
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
    // No comment inside an event: clients discard an incomplete event.
    const response = this.#isSending ? this.#response.end() : this.#response.end(`: ${comment}\n\n`);
    // Unread bytes must not delay a drain.
    const stalled = setTimeout(() => response.destroy(), this.#waits.stalledMs).unref();
    response.once('close', () => clearTimeout(stalled));
  }

  /** Node restarts a socket's timeout whenever some bytes are sent, so only a client that reads nothing meets it. */
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

  /** Decided after the sockets were polled: after a pause of this process timers run first, before it is known what the client has read meanwhile. */
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
