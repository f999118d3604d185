import type { ServerResponse } from 'node:http';
import { limits, type Waits } from '../limits.ts';

/** Writes an event stream to one client. */
export class SseClient {
  /** Resolves once nothing more can be sent. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #waits: Waits;
  readonly #heartbeat: NodeJS.Timeout;
  #isOpen = true;
  /** Between two pieces of one event. */
  #isSending = false;
  #onClosed: () => void = () => {};
  #onDrained: () => void = () => {};

  /** Sends the head and a comment: the client knows that it is connected. */
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

  /** Does not wait. A client with more than `limits.unsentBytes` unread is disconnected; it resumes. */
  write(sse: string): void {
    if (!this.#isOpen) return;
    if (this.#response.writableLength > limits.unsentBytes) this.#drop();
    else this.#response.write(sse);
  }

  /**
   * Writes as fast as the client reads; resolves when nearly all is read or it has disconnected. A client that reads nothing for `stalledMs` is disconnected;
   * a slow one gets even the largest event.
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

  /** Node restarts a socket's timeout whenever bytes are sent: only a stalled client meets it. */
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

  /** Decided after the sockets are polled: after a pause of this process timers run first, before it is known what the client has read. */
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
