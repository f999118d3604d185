import type { ServerResponse } from 'node:http';
import { limits, type Waits } from '../limits.ts';

/** One client of an event stream, seen from the side that writes. */
export class SseClient {
  /** Resolves once the connection is gone, for whatever reason. */
  readonly gone: Promise<void>;
  readonly #response: ServerResponse;
  readonly #waits: Waits;
  readonly #heartbeat: NodeJS.Timeout;
  #isOpen = true;

  /** Sends the head at once, with a comment, so that the client knows that it is connected. */
  constructor(response: ServerResponse, headers: Record<string, string>, waits: Waits) {
    this.#response = response;
    this.#waits = waits;
    this.gone = new Promise((resolve) => response.once('close', resolve));
    response.once('close', () => this.#close());
    // A connection that breaks says so by its close, which follows.
    response.on('error', () => {});
    this.#heartbeat = setInterval(() => this.write(': heartbeat\n\n'), waits.heartbeatMs).unref();
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' });
    this.write(': connected\n\n');
    if (response.destroyed) this.#close();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A client that has left too much unread is dropped: it resumes from what it has, and we keep no copy for it. */
  write(sse: string): void {
    if (!this.#isOpen) return;
    if (this.#response.writableLength > limits.unsentBytes) {
      this.#close();
      this.#response.destroy();
    } else this.#response.write(sse);
  }

  /** Resolves when the client has taken what was written, or is gone. One that takes nothing for long is dropped. */
  async taken(): Promise<void> {
    if (!this.#isOpen || !this.#response.writableNeedDrain) return;
    const response = this.#response;
    await new Promise<void>((resolve) => {
      const stalled = setTimeout(() => response.destroy(), this.#waits.stalledMs);
      const settle = () => {
        clearTimeout(stalled);
        response.off('drain', settle).off('close', settle);
        resolve();
      };
      response.once('drain', settle).once('close', settle);
    });
  }

  end(comment: string): void {
    if (!this.#isOpen) return;
    this.#close();
    const response = this.#response.end(`: ${comment}\n\n`);
    // What it has not read yet must not hold up a gateway that leaves.
    const stalled = setTimeout(() => response.destroy(), this.#waits.stalledMs).unref();
    response.once('close', () => clearTimeout(stalled));
  }

  #close(): void {
    this.#isOpen = false;
    clearInterval(this.#heartbeat);
  }
}
