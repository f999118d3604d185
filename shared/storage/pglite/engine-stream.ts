import { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';

/** `ReadyForQuery`, outside a transaction. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
/** The engine has one session: a client before may have left a transaction open, and names of prepared statements. */
const RESET = 'rollback; deallocate all';

/** The engine's protocol without buffers of its own, as of PGlite. */
type Engine = Pick<PGlite, 'exec' | 'execProtocolRawStream' | 'waitReady'>;

/**
 * What a `pg` client has in place of a socket. All messages of a statement go to the engine in one call, in the event loop's next iteration: as with a
 * server, what other callers want to store meanwhile arrives before the reply, so that group commits have something to group (ADR 150).
 */
export class EngineStream extends Duplex {
  readonly #engine: Engine;
  #isStarted = false;

  constructor(engine: Engine) {
    super();
    this.#engine = engine;
  }

  connect(): void {
    this.#engine.waitReady.then(
      () => this.emit('connect'),
      (error: unknown) => this.destroy(asError(error)),
    );
  }

  override _read(): void {}

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    setImmediate(() => {
      if (this.destroyed) return done();
      this.#execute(chunks.map(({ chunk }) => chunk)).then(
        () => done(),
        (error: unknown) => done(asError(error)),
      );
    });
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  async #execute(messages: readonly Buffer[]): Promise<void> {
    if (this.#isStarted) {
      await this.#send(Buffer.concat(messages));
      return;
    }
    // The startup message, which needs no reply but this.
    this.#isStarted = true;
    await this.#engine.exec(RESET);
    this.push(READY);
  }

  async #send(bytes: Buffer): Promise<void> {
    const parts: Buffer[] = [];
    try {
      // Copied: a part is the engine's own memory.
      await this.#engine.execProtocolRawStream(bytes, { onRawData: (part) => void parts.push(Buffer.from(part)), syncToFs: false });
    } finally {
      // An engine that fails may have reported why.
      for (const part of parts) this.push(part);
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the embedded database failed', { cause: error });
}
