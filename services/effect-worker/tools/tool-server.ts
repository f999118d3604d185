import type { Clock } from '#shared/clock.ts';
import { Breaker } from './breaker.ts';
import { type Connection, openConnection } from './connection.ts';
import { Slots } from './slots.ts';
import { ToolFailure } from './tool-failure.ts';
import type { WatchedFetch } from './watched-fetch.ts';

/** Requests to one server at once. */
const MAX_REQUESTS = 16;

interface Held {
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
  #opening: Promise<Held> | null = null;
  /** What `#opening` has become; null while it is not open. */
  #held: Held | null = null;
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
    await this.#held?.connection.close(); // no fail point: stops
  }

  async #using<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    this.#opening ??= this.#open();
    const opening = this.#opening;
    const held = await opening; // no fail point: waits
    held.users += 1;
    try {
      return await work(held.connection); // no fail point: inside
    } catch (error) {
      if (error instanceof ToolFailure && error.kind === 'session_lost') {
        held.isRetired = true;
        if (this.#opening === opening) this.#opening = this.#held = null;
      }
      throw error;
    } finally {
      held.users -= 1;
      // What others still have under way on a lost session may get its answer yet.
      if (held.isRetired && held.users === 0) held.connection.close().catch(() => {});
    }
  }

  async #open(): Promise<Held> {
    try {
      const onListChanged = () => {
        this.isListStale = true;
      };
      const connection = await openConnection({ ...this.#deps, onListChanged }); // no fail point: requests
      if (this.#isClosed) await connection.close(); // no fail point: stops
      this.#held = { connection, users: 0, isRetired: false };
      return this.#held;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }
}
