import type { ServerResponse } from 'node:http';
import { type SseLimits, SseWriter } from './sse-writer.ts';

interface PacedSseLimits extends SseLimits {
  /** Of one write to a client that catches up: a slow client drains some of it, a stalled one none. */
  pieceBytes: number;
  /** Between comments that keep an idle stream open through proxies. */
  heartbeatMs: number;
  /** A client that catches up and reads nothing for this long is disconnected. */
  stalledMs: number;
}

/** Writes an event stream to one client, live events at once, and stored ones as fast as the client reads. */
export class PacedSseWriter {
  /** Resolves once nothing more can be sent. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #writer: SseWriter;
  readonly #limits: PacedSseLimits;
  readonly #heartbeat: NodeJS.Timeout;
  #isOpen = true;
  /** Between two pieces of one event. */
  #isSending = false;
  #onClosed: () => void = () => {};
  #onDrained: () => void = () => {};

  /** Sends the head and a comment: the client knows that it is connected. */
  constructor(response: ServerResponse, headers: Record<string, string>, limits: PacedSseLimits) {
    this.#response = response;
    this.#limits = limits;
    this.#writer = new SseWriter(response, limits, () => this.#close());
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve;
    });
    response.on('timeout', () => this.#onTimeout());
    response.once('close', () => this.#close());
    this.#heartbeat = setInterval(() => {
      if (!this.#isSending) this.write(': heartbeat\n\n');
    }, limits.heartbeatMs).unref();
    // A client that disconnected earlier emits no further `close`.
    if (response.destroyed) {
      this.#close();
      return;
    }
    this.#writer.open({ ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' });
    this.write(': connected\n\n');
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Does not wait. A client that leaves too much unread is disconnected; it resumes. */
  write(sse: string): void {
    if (this.#isOpen) this.#writer.write(sse);
  }

  /**
   * Writes as fast as the client reads; resolves when nearly all is read or it has disconnected. A client that reads nothing for `stalledMs` is disconnected;
   * a slow one gets even the largest event.
   */
  async send(sse: string): Promise<void> {
    const bytes = Buffer.from(sse, 'utf8');
    // Uncorked: Node reports the socket's own buffer only then.
    this.#writer.flush();
    this.#isSending = true;
    for (let at = 0; at < bytes.length && this.#isOpen; at += this.#limits.pieceBytes) {
      this.#response.write(bytes.subarray(at, at + this.#limits.pieceBytes));
      if (this.#response.writableNeedDrain) await this.#drained();
    }
    this.#isSending = false;
  }

  end(comment: string): void {
    if (!this.#isOpen) return;
    this.#close();
    // No comment inside an event: clients discard an incomplete event.
    this.#writer.end(this.#isSending ? undefined : `: ${comment}\n\n`);
  }

  /** Node restarts a socket's timeout whenever bytes are sent: only a stalled client meets it. */
  async #drained(): Promise<void> {
    const response = this.#response;
    response.setTimeout(this.#limits.stalledMs);
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
