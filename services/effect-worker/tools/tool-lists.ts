import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { type ListedTool, listedTool } from '#bus/messages/tool.ts';
import type { Clock } from '#shared/clock.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { orStopped, withAttempts } from './attempts.ts';
import { readTools } from './read-tools.ts';
import { ToolFailure } from './tool-failure.ts';
import type { ToolServer } from './tool-server.ts';
import type { ToolServers } from './tool-servers.ts';

/** A younger list is taken from its row, unless the server announced a change: runs begin more often than tools change. */
const FRESH_SECONDS = 30;
/** With all pages and tries. */
const LIST_TIMEOUT_MS = 60_000;
const MAX_CACHED = 100;

export type Listing = { listHash: string } | { unavailable: 'unreachable' | 'auth_failed' };

export interface ToolListsDeps {
  database: Database;
  servers: ToolServers;
  clock: Clock;
  log: Log;
}

const storedTools = z.array(listedTool);

/** Tool lists: fetched from the servers, stored by content hash, indexed by server. */
export class ToolLists {
  readonly #deps: ToolListsDeps;
  readonly #cached = new LRUCache<string, readonly ListedTool[]>({ max: MAX_CACHED });
  /** By bundle and server; concurrent callers share one request. */
  readonly #inFlight = new Map<string, { promise: Promise<Listing>; isProbe: boolean }>();
  readonly #stopped = new AbortController();

  constructor(deps: ToolListsDeps) {
    this.#deps = deps;
    setMaxListeners(0, this.#stopped.signal);
  }

  /**
   * A server's list, at most `FRESH_SECONDS` old.
   * @param isProbe a background request: one try, which the breaker does not count
   */
  async current(bundle: Bundle, serverId: string, { isProbe = false } = {}): Promise<Listing> {
    const server = this.#deps.servers.of(bundle, serverId);
    if (server === null) {
      this.#deps.log.warn({ server: serverId, bundle: bundle.hash }, 'a tool server was requested that the configuration does not name');
      return { unavailable: 'unreachable' };
    }
    const key = `${bundle.hash} ${serverId}`;
    const inFlight = this.#inFlight.get(key);
    if (inFlight !== undefined) {
      const listing = await inFlight.promise; // no fail point: waits
      // Other callers need more than the probe's one try.
      return 'listHash' in listing || isProbe || !inFlight.isProbe ? listing : this.current(bundle, serverId);
    }
    const promise = this.#refresh(bundle, serverId, server, isProbe).finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, { promise, isProbe });
    return promise;
  }

  /** Whether the server has announced a change, or its own word about its list is over. */
  isStale(bundle: Bundle | null, serverId: string): boolean {
    return bundle !== null && (this.#deps.servers.of(bundle, serverId)?.isListStale ?? false);
  }

  /** Null when the tool is not listed. */
  async tool(listHash: string, toolName: string): Promise<ListedTool | null> {
    const tools = this.#cached.get(listHash) ?? (await this.#read(listHash)); // no fail point: reads
    return tools.find(({ name }) => name === toolName) ?? null;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled([...this.#inFlight.values()].map(({ promise }) => promise)); // no fail point: stops
  }

  async #refresh(bundle: Bundle, serverId: string, server: ToolServer, isProbe: boolean): Promise<Listing> {
    const fresh = server.isListStale ? null : await this.#freshHash(bundle.hash, serverId); // no fail point: reads
    if (fresh !== null) return { listHash: fresh };
    try {
      // Reset before the request: a change announced from now on may come after the response.
      server.isListStale = false;
      const { tools, warnings, ttlMs } = await this.#fetch(server, isProbe); // no fail point: requests
      server.noteListed(ttlMs);
      for (const warning of warnings) this.#deps.log.warn({ server: serverId, warning }, 'a tool server lists something that can not be used');
      return { listHash: await this.#store(bundle.hash, serverId, tools) }; // no fail point: inside
    } catch (error) {
      server.isListStale = true;
      if (!(error instanceof ToolFailure)) throw error;
      const unavailable = error.kind === 'auth_failed' ? 'auth_failed' : 'unreachable';
      this.#deps.log.warn({ server: serverId, failure: error.kind, status: error.status, err: error }, 'the tools of a server could not be listed');
      if (error.kind !== 'stopped') await this.#noteUnavailable(bundle.hash, serverId, unavailable); // no fail point: refreshes
      return { unavailable };
    }
  }

  #fetch(server: ToolServer, isProbe: boolean) {
    const { clock } = this.#deps;
    const signal = this.#stopped.signal;
    const limits = { signal, timeoutMs: LIST_TIMEOUT_MS, longestMs: LIST_TIMEOUT_MS };
    const refresh = () =>
      orStopped(
        signal,
        server.connected((connection) => readTools(connection, limits), { isProbe }),
      );
    if (isProbe) return refresh();
    return withAttempts({ repeatable: true, signal, deadlineAtMs: clock.nowMs() + LIST_TIMEOUT_MS, clock }, () => server.slots.withSlot(signal, refresh));
  }

  async #freshHash(bundleHash: string, serverId: string): Promise<string | null> {
    // no fail point: reads
    const { rows } = await this.#deps.database.query<{ list_hash: string }>(
      `select list_hash from tool_servers
       where bundle_hash = $1 and server_id = $2 and state = 'ready' and list_hash is not null and checked_at > now() - make_interval(secs => $3)`,
      [bundleHash, serverId, FRESH_SECONDS],
    );
    return rows[0]?.list_hash ?? null;
  }

  async #store(bundleHash: string, serverId: string, tools: readonly ListedTool[]): Promise<string> {
    const body = canonicalJson(tools);
    const hash = createHash('sha256').update(body).digest('hex');
    const { database } = this.#deps;
    // The list first: a reader of the server's row must find it. Clearing `unused_since` keeps the sweep from deleting it.
    await database.query('insert into tool_lists (hash, tools) values ($1, $2::json) on conflict (hash) do update set unused_since = null', [hash, body]);
    failPoint('tool-list.stored');
    // no fail point: refreshes
    await database.query(
      `insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ($1, $2, $3, 'ready', now())
       on conflict (bundle_hash, server_id) do update set list_hash = excluded.list_hash, state = 'ready', checked_at = now()`,
      [bundleHash, serverId, hash],
    );
    this.#cache(hash, tools);
    return hash;
  }

  /** Keeps the last known list: the server is unavailable, its tools are not removed. */
  async #noteUnavailable(bundleHash: string, serverId: string, state: 'unreachable' | 'auth_failed'): Promise<void> {
    // no fail point: refreshes
    await this.#deps.database.query(
      `insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ($1, $2, null, $3, now())
       on conflict (bundle_hash, server_id) do update set state = excluded.state, checked_at = now()`,
      [bundleHash, serverId, state],
    );
  }

  async #read(listHash: string): Promise<readonly ListedTool[]> {
    const { rows } = await this.#deps.database.query<{ tools: unknown }>('select tools from tool_lists where hash = $1', [listHash]); // no fail point: reads
    if (rows[0] === undefined) return [];
    const tools = storedTools.parse(rows[0].tools);
    this.#cache(listHash, tools);
    return tools;
  }

  #cache(hash: string, tools: readonly ListedTool[]): void {
    this.#cached.set(hash, tools);
  }
}
