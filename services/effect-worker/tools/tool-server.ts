import type { Clock } from '#shared/clock.ts';
import { Breaker } from './breaker.ts';
import { type Connection, openConnection } from './connection.ts';
import { Slots } from './slots.ts';
import { ToolFailure } from './tool-failure.ts';
import type { WatchedFetch } from './watched-fetch.ts';

/** Requests to one server at once. */
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

/** One tool server: its connection, opened when it is needed and shared by all, and what protects the server and us from each other. */
export class ToolServer {
  readonly slots = new Slots(MAX_REQUESTS);
  readonly #deps: ToolServerDeps;
  readonly #breaker: Breaker;
  #opening: Promise<OpenServer> | null = null;
  /** What `#opening` has become; null while it is not open. */
  #opened: OpenServer | null = null;
  #isClosed = false;
  /** Whether the server has said that its tools are not what they were. */
  isListStale = false;

  constructor(deps: ToolServerDeps) {
    this.#deps = deps;
    this.#breaker = new Breaker(deps.clock);
  }

  /**
   * Does something with the connection, which is opened first when there is none.
   * @param isProbe goes to a server that is left alone, too, and its failures do not count
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

  /** Closes what is open; a connection in the making closes itself. */
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
      // What others still have under way on a lost session may get its answer yet.
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
