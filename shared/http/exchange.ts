import type { Dispatcher } from 'undici';

/** Bytes that wait for a reader; past it the connection is read no further until there is one. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** After this much, or this long, a response that nobody reads any more costs more than a new connection. */
const RELEASE_MAX_BYTES = 64 * 1024;
const RELEASE_MAX_MS = 1_000;

type Headers = Record<string, string | string[] | undefined>;

/** Takes a piece of a body. @returns false when no more is wanted */
type ChunkHandler = (piece: Buffer) => boolean;

/** Who waits for something, once. */
interface Waiting<Value> {
  resolve(value: Value): void;
  reject(reason: unknown): void;
}

/**
 * One request and its response, as the pool tells of them piece by piece. It takes the place of a stream and of signals, which cost more
 * than all else about a short answer.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  /** Stops the making of a connection; null once there is one, or while the request waits for its turn. */
  #stopConnecting: (() => void) | null = null;
  #status = 0;
  #headers: Headers = {};
  /** What has come of the body before somebody reads it. */
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #head: Waiting<void> | null = null;
  /** Null before somebody reads the body, and once he wants no more. */
  #reader: (Waiting<boolean> & { onChunk: ChunkHandler }) | null = null;
  #isRead = false;
  #hasEnded = false;
  #failure: { reason: unknown } | null = null;
  #release: { timer: NodeJS.Timeout; restBytes: number } | null = null;

  /** Resolves when the response has begun. Once. @throws the network's error, or the reason of `abort` */
  begun(): Promise<void> {
    if (this.#status !== 0) return Promise.resolve();
    if (this.#failure !== null) return Promise.reject(this.#failure.reason);
    return new Promise((resolve, reject) => {
      this.#head = { resolve, reject };
    });
  }

  get status(): number {
    return this.#status;
  }

  /** A header's first value; null when there is none. The name is in lower case. */
  header(name: string): string | null {
    const value = this.#headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? null;
  }

  /**
   * Hands the body on, each piece in the call in which it comes: to wake somebody for each would cost as much as what he does with it.
   * Once. Whoever wants no more goes on to `release` or `abort`.
   *
   * @param onChunk what it throws ends the reading, and is thrown here
   * @returns whether the body has ended; false when no more was wanted. @throws the network's error, once all before it was handed on, or
   *   the reason of `abort`
   */
  read(onChunk: ChunkHandler): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#reader = { onChunk, resolve, reject };
      const unread = this.#unread;
      this.#unread = [];
      for (const piece of unread) this.#hand(piece);
      // Only now: what the pool has held back comes in this very call.
      if (this.#unreadBytes > MAX_UNREAD_BYTES && this.#reader !== null) this.#controller?.resume();
      this.#notifyEnd();
    });
  }

  /** Nothing more is wanted, and the end is near: what is left is read and dropped, so that the connection can serve again. */
  release(): void {
    this.#unread = [];
    if (this.#hasEnded || this.#failure !== null) return;
    const timer = setTimeout(() => this.abort(new Error('what is left takes too long')), RELEASE_MAX_MS);
    this.#release = { timer, restBytes: RELEASE_MAX_BYTES };
    this.#controller?.resume();
  }

  /** Closes the connection at once, in whatever state the request is; one whose response is there to its end serves again. */
  abort(reason: unknown): void {
    if (this.#failure !== null) return;
    const controller = this.#controller;
    this.#unread = [];
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
    this.#head?.resolve();
    this.#head = null;
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#failure !== null) return;
    if (this.#release !== null) {
      this.#release.restBytes -= piece.byteLength;
      if (this.#release.restBytes < 0) this.abort(new Error('what is left is too much to be read'));
      return;
    }
    if (this.#isRead || this.#reader !== null) {
      this.#hand(piece);
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

  /** What comes when no more is wanted, before anybody could say so, is dropped. */
  #hand(piece: Buffer): void {
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

  /** The connection remembers its last exchange: that must not hold what was sent. */
  #detach(): void {
    this.#controller = null;
    clearTimeout(this.#release?.timer);
    this.#notifyEnd();
  }
}
