import type { Clock } from '#shared/clock.ts';
import { Breaker } from './breaker.ts';
import { type Connection, openConnection, type ServerEra } from './connection.ts';
import { Slots } from './slots.ts';
import { ToolFailure } from './tool-failure.ts';
import type { WatchedFetch } from './watched-fetch.ts';

const MAX_REQUESTS = 16;
/** How long a server that spoke with sessions is not probed again: after an update it may still do so. */
const ERA_KEPT_MS = 3_600_000;

/** A list is not read again for each call. */
const LEAST_TTL_MS = 1_000;

interface OpenServer {
  connection: Connection;
  users: number;
  isRetired: boolean;
}

export interface ToolServerDeps {
  url: URL;
  bearer: string | null;
  fetcher: WatchedFetch;
  /** Monotonic. */
  clock: Clock;
}

/** One tool server: a shared connection, opened on first use, with a request limit and a circuit breaker. */
export class ToolServer {
  readonly slots = new Slots(MAX_REQUESTS);
  readonly #deps: ToolServerDeps;
  readonly #breaker: Breaker;
  #opening: Promise<OpenServer> | null = null;
  /** Value of `#opening`, once resolved. */
  #opened: OpenServer | null = null;
  #isClosed = false;
  /** What its last connection spoke. */
  #era: { known: ServerEra; untilMs: number } | null = null;
  #isListStale = false;
  /** By the server's own word. */
  #listStaleAtMs = Number.POSITIVE_INFINITY;

  constructor(deps: ToolServerDeps) {
    this.#deps = deps;
    this.#breaker = new Breaker(deps.clock);
  }

  /**
   * Runs `work` with the shared connection, which is opened on demand.
   * @param isProbe bypasses the breaker, which does not count its failures
   * @throws ToolFailure
   */
  async connected<Result>(work: (connection: Connection) => Promise<Result>, { isProbe = false } = {}): Promise<Result> {
    if (!isProbe) this.#breaker.check();
    try {
      const result = await this.#using(work); // no fail point: inside
      this.#breaker.note(null);
      return result;
    } catch (error) {
      if (error instanceof ToolFailure && !isProbe) this.#breaker.note(error);
      throw error;
    }
  }

  /** The list is to be read again, whatever its age. */
  get isListStale(): boolean {
    return this.#isListStale || this.#deps.clock.nowMs() >= this.#listStaleAtMs;
  }

  set isListStale(isStale: boolean) {
    this.#isListStale = isStale;
    if (!isStale) this.#listStaleAtMs = Number.POSITIVE_INFINITY;
  }

  /** @param ttlMs zero or null: the server does not say how long its list stays as it is */
  noteListed(ttlMs: number | null): void {
    if (ttlMs !== null && ttlMs > 0) this.#listStaleAtMs = this.#deps.clock.nowMs() + Math.max(ttlMs, LEAST_TTL_MS);
  }

  /** A connection that is being opened closes itself. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opened?.connection.close(); // no fail point: stops
  }

  async #using<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    this.#opening ??= this.#open();
    const opening = this.#opening;
    const opened = await opening; // no fail point: waits
    opened.users += 1;
    try {
      return await work(opened.connection); // no fail point: inside
    } catch (error) {
      if (error instanceof ToolFailure && error.kind === 'session_lost') {
        opened.isRetired = true;
        // A server without sessions has none to lose: it speaks another version now.
        if (opened.connection.era.kind === 'modern') this.#era = null;
        if (this.#opening === opening) this.#opening = this.#opened = null;
      }
      throw error;
    } finally {
      opened.users -= 1;
      // Other requests in flight on the lost session may still get their responses.
      if (opened.isRetired && opened.users === 0) opened.connection.close().catch(() => {});
    }
  }

  async #open(): Promise<OpenServer> {
    try {
      const connection = await this.#handshake(); // no fail point: inside
      if (this.#isClosed) await connection.close(); // no fail point: stops
      this.#opened = { connection, users: 0, isRetired: false };
      return this.#opened;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }

  async #handshake(): Promise<Connection> {
    const { clock } = this.#deps;
    const onListChanged = () => {
      this.isListStale = true;
    };
    const open = async (era: ServerEra | null) => {
      const connection = await openConnection({ ...this.#deps, era, onListChanged }); // no fail point: requests
      this.#era = { known: connection.era, untilMs: era === null || this.#era === null ? clock.nowMs() + ERA_KEPT_MS : this.#era.untilMs };
      return connection;
    };
    const known = this.#era !== null && clock.nowMs() < this.#era.untilMs ? this.#era.known : null;
    if (known === null) return open(null);
    try {
      return await open(known); // no fail point: requests
    } catch (error) {
      this.#era = null;
      // Another answer than it gave before: it may speak another version now.
      if (error instanceof ToolFailure && error.kind === 'unreachable' && error.status !== null) return open(null);
      throw error;
    }
  }
}
