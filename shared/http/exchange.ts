import type { Dispatcher } from 'undici';

/** Bytes that wait for a reader; past it the connection is read no further until there is one. */
const MAX_WAITING_BYTES = 256 * 1024;
/** After this much, or this long, a response that nobody reads any more costs more than a new connection. */
const RELEASE_MAX_BYTES = 64 * 1024;
const RELEASE_MAX_MS = 1_000;

type Headers = Record<string, string | string[] | undefined>;

/**
 * One request and its response, as the pool tells of them piece by piece. It takes the place of a stream and of signals, which cost more
 * than all else about a short answer: what comes waits here until it is read.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  /** Stops the making of a connection; null once there is one, or while the request waits for its turn. */
  #stopConnecting: (() => void) | null = null;
  #status = 0;
  #headers: Headers = {};
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Of whoever waits for the head of the response, or for more of its body: one at most. */
  #wake: (() => void) | null = null;
  #hasEnded = false;
  #failure: { reason: unknown } | null = null;
  #release: { timer: NodeJS.Timeout; restBytes: number } | null = null;

  /** Resolves when the response has begun. @throws the network's error, or the reason of `abort` */
  async begun(): Promise<void> {
    if (this.#status === 0 && this.#failure === null) await this.#told();
    if (this.#status === 0 && this.#failure !== null) throw this.#failure.reason;
  }

  get status(): number {
    return this.#status;
  }

  /** A header's first value; null when there is none. The name is in lower case. */
  header(name: string): string | null {
    const value = this.#headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? null;
  }

  /** Resolves when `take` has something new to give. One wait at a time. */
  news(): Promise<void> {
    if (this.#pieces.length > 0 || this.#hasEnded || this.#failure !== null) return Promise.resolve();
    return this.#told();
  }

  /**
   * All of the body that has come since it was last taken, which may be nothing; null at its end. Whoever takes no more goes on to
   * `release` or `abort`. @throws the network's error, once all before it is taken, or the reason of `abort`
   */
  take(): readonly Uint8Array[] | null {
    if (this.#pieces.length === 0 && this.#failure !== null) throw this.#failure.reason;
    if (this.#pieces.length === 0 && this.#hasEnded) return null;
    const pieces = this.#pieces;
    const isPaused = this.#waitingBytes > MAX_WAITING_BYTES;
    this.#pieces = [];
    this.#waitingBytes = 0;
    if (isPaused) this.#controller?.resume();
    return pieces;
  }

  /** Nothing more is wanted, and the end is near: what is left is read and dropped, so that the connection can serve again. */
  release(): void {
    this.#pieces = [];
    if (this.#hasEnded || this.#failure !== null) return;
    const timer = setTimeout(() => this.abort(new Error('what is left takes too long')), RELEASE_MAX_MS);
    this.#release = { timer, restBytes: RELEASE_MAX_BYTES };
    this.#controller?.resume();
  }

  /** Closes the connection at once, in whatever state the request is; one whose response is there to its end serves again. */
  abort(reason: unknown): void {
    if (this.#failure !== null) return;
    const controller = this.#controller;
    this.#pieces = [];
    this.#fail(reason);
    if (this.#hasEnded) return;
    this.#stopConnecting?.();
    controller?.abort(new Error('nobody waits for the response any more'));
  }

  /** A connection is being made for this request alone. @param stop ends that @returns says that there is one, or none */
  connecting(stop: () => void): () => void {
    if (this.#failure !== null) stop();
    this.#stopConnecting = stop;
    return () => {
      this.#stopConnecting = null;
    };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It learns only here of an abort that came while it waited for a connection.
    if (this.#failure !== null) controller.abort(new Error('nobody waits for the response any more'));
    else this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // Says only that the response is on its way.
    if (status < 200) return;
    // Nobody reads them as bytes, and they would keep all that was read with them for as long as the response takes.
    controller.rawHeaders = null;
    this.#status = status;
    this.#headers = headers;
    this.#tell();
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Uint8Array): void {
    if (this.#failure !== null) return;
    if (this.#release !== null) {
      this.#release.restBytes -= piece.byteLength;
      if (this.#release.restBytes < 0) this.abort(new Error('what is left is too much to be read'));
      return;
    }
    this.#pieces.push(piece);
    this.#waitingBytes += piece.byteLength;
    if (this.#waitingBytes > MAX_WAITING_BYTES) controller.pause();
    this.#tell();
  }

  onResponseEnd(): void {
    this.#hasEnded = true;
    this.#letGo();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #told(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #tell(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#letGo();
  }

  /** The connection remembers its last exchange: that must not hold what was sent. */
  #letGo(): void {
    this.#controller = null;
    clearTimeout(this.#release?.timer);
    this.#tell();
  }
}
