import type { Dispatcher } from 'undici';

/** High-water mark of unread bytes; past it the connection is paused. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Beyond either, draining an unwanted response costs more than a new connection. */
const RELEASE_MAX_BYTES = 64 * 1024;
const RELEASE_MAX_MS = 1_000;

/** For undici and its sockets; callers get the reason of `abort`. One object for all, since Node formats the stack of each error that a socket is destroyed with. */
export const ABORTED = new Error('the request was aborted');

/** undici makes an error of its own for each abort, and destroys the socket with it: without frames its stack costs nothing. */
function abortThrough(controller: Dispatcher.DispatchController): void {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    controller.abort(ABORTED);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

type Headers = Record<string, string | string[] | undefined>;

/** @returns false when no more is wanted */
type ChunkHandler = (piece: Buffer) => boolean;

interface Waiting<Value> {
  resolve(value: Value): void;
  reject(reason: unknown): void;
}

/**
 * One request and its response, as a dispatch handler of undici's pool. Without streams and signals, which would dominate the cost of a
 * short response.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  /** Cancels the connect; null once connected, or while the request is queued. */
  #stopConnecting: (() => void) | null = null;
  #status = 0;
  #headers: Headers = {};
  /** Pieces received before `read`. */
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #head: Waiting<void> | null = null;
  /** Null before `read`, and once no more is wanted. */
  #reader: (Waiting<boolean> & { onChunk: ChunkHandler }) | null = null;
  #isRead = false;
  #hasEnded = false;
  #failure: { reason: unknown } | null = null;
  #release: { timer: NodeJS.Timeout; restBytes: number } | null = null;

  /** Resolves when status and headers have arrived. Call once. @throws the network's error, or the reason of `abort` */
  begun(): Promise<void> {
    if (this.#status !== 0) return Promise.resolve();
    if (this.#failure !== null) return Promise.reject(this.#failure.reason);
    return new Promise((resolve, reject) => {
      this.#head = { resolve, reject };
    });
  }

  /** By the network, or by `abort`. */
  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  get status(): number {
    return this.#status;
  }

  /** A header's first value; null: absent. @param name in lower case */
  header(name: string): string | null {
    const value = this.#headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? null;
  }

  /**
   * Calls `onChunk` with each piece as it arrives: a promise per piece would cost as much as its handling. Call once, then `release` or
   * `abort` if no more is wanted.
   *
   * @param onChunk an error it throws ends the reading and is thrown here
   * @returns true at the end of the body, false when no more was wanted
   * @throws the network's error, after all earlier pieces, or the reason of `abort`
   */
  read(onChunk: ChunkHandler): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#reader = { onChunk, resolve, reject };
      const unread = this.#unread;
      this.#unread = [];
      for (const piece of unread) this.#emit(piece);
      // Last, since undici delivers what it held back within this call.
      if (this.#unreadBytes > MAX_UNREAD_BYTES && this.#reader !== null) this.#controller?.resume();
      this.#notifyEnd();
    });
  }

  /** Drops the rest of a nearly complete response, within bounds, so that the connection can be reused. */
  release(): void {
    this.#unread = [];
    if (this.#hasEnded || this.#failure !== null) return;
    const timer = setTimeout(() => this.abort(new Error('draining the rest of the response takes too long')), RELEASE_MAX_MS);
    this.#release = { timer, restBytes: RELEASE_MAX_BYTES };
    this.#controller?.resume();
  }

  /** Closes the connection at once, in any state; after a complete response it is reused. */
  abort(reason: unknown): void {
    if (this.#failure !== null) return;
    const controller = this.#controller;
    this.#unread = [];
    this.#fail(reason);
    if (this.#hasEnded) return;
    this.#stopConnecting?.();
    if (controller !== null) abortThrough(controller);
  }

  /** Registers a connect made for this request alone. @param stop cancels it @returns to be called once connecting is over */
  connecting(stop: () => void): () => void {
    if (this.#failure !== null) stop();
    this.#stopConnecting = stop;
    return () => {
      this.#stopConnecting = null;
    };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // An abort while the request was queued takes effect here.
    if (this.#failure !== null) abortThrough(controller);
    else this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // Informational (1xx): the response follows.
    if (status < 200) return;
    // Unused, and they would retain the whole socket read until the response ends.
    controller.rawHeaders = null;
    this.#status = status;
    this.#headers = headers;
    this.#head?.resolve();
    this.#head = null;
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#failure !== null) return;
    if (this.#release !== null) {
      this.#release.restBytes -= piece.byteLength;
      if (this.#release.restBytes < 0) this.abort(new Error('the rest of the response is too large to drain'));
      return;
    }
    if (this.#isRead || this.#reader !== null) {
      this.#emit(piece);
      return;
    }
    this.#unread.push(piece);
    this.#unreadBytes += piece.byteLength;
    if (this.#unreadBytes > MAX_UNREAD_BYTES) controller.pause();
  }

  onResponseEnd(): void {
    this.#hasEnded = true;
    this.#detach();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  /** Pieces that arrive when no more is wanted are dropped. */
  #emit(piece: Buffer): void {
    const reader = this.#reader;
    if (reader === null) return;
    try {
      if (reader.onChunk(piece)) return;
      reader.resolve(false);
    } catch (error) {
      reader.reject(error);
    }
    this.#endReading();
  }

  #notifyEnd(): void {
    if (this.#failure !== null) {
      this.#head?.reject(this.#failure.reason);
      this.#head = null;
      if (this.#reader === null) return;
      this.#reader.reject(this.#failure.reason);
      this.#endReading();
    } else if (this.#hasEnded && this.#reader !== null) {
      this.#reader.resolve(true);
      this.#endReading();
    }
  }

  #endReading(): void {
    this.#reader = null;
    this.#isRead = true;
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#detach();
  }

  /** The connection keeps its last exchange, which must not retain the request through the controller. */
  #detach(): void {
    this.#controller = null;
    clearTimeout(this.#release?.timer);
    this.#notifyEnd();
  }
}
