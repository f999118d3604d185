import type { Clock } from '#shared/clock.ts';
import { Breaker } from './breaker.ts';
import { type Connection, openConnection } from './connection.ts';
import { Slots } from './slots.ts';
import { ToolFailure } from './tool-failure.ts';
import type { WatchedFetch } from './watched-fetch.ts';

const MAX_REQUESTS = 16;

interface OpenServer {
  connection: Connection;
  users: number;
  isRetired: boolean;
}

export interface ToolServerDeps {
  url: URL;
  bearer: string | null;
  fetcher: WatchedFetch;
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
  isListStale = false;

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
      const onListChanged = () => {
        this.isListStale = true;
      };
      const connection = await openConnection({ ...this.#deps, onListChanged }); // no fail point: requests
      if (this.#isClosed) await connection.close(); // no fail point: stops
      this.#opened = { connection, users: 0, isRetired: false };
      return this.#opened;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }
}
