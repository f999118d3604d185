import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { type Environment, resolveKey } from '#shared/config/secret-ref.ts';
import { ToolServer } from './tool-server.ts';
import { openWatchedFetch, type WatchedFetch } from './watched-fetch.ts';

/** Over all configurations. */
const MAX_SERVERS = 256;

/** The tool servers of all configurations; equal entries share one server and connection. */
export class ToolServers {
  readonly #environment: Environment;
  readonly #intervalClock: Clock;
  readonly #fetcher: WatchedFetch;
  readonly #servers = new LRUCache<string, ToolServer>({
    max: MAX_SERVERS,
    noDisposeOnSet: true,
    dispose: (server) => void server.close().catch(() => {}),
  });

  /** @param intervalClock for lengths of time, which setting a machine's clock leaves alone; absent: this process's */
  constructor({ environment, clock, intervalClock = steadyClock }: { environment: Environment; clock: Clock; intervalClock?: Clock }) {
    this.#environment = environment;
    this.#intervalClock = intervalClock;
    this.#fetcher = openWatchedFetch({ environment, nowMs: () => clock.nowMs(), intervalClock });
  }

  of({ body }: Bundle, serverId: string): ToolServer | null {
    const configured = body.manifest.agent_config.mcps.find(({ id }) => id === serverId);
    if (configured === undefined) return null;
    const { hostname, port, path, api_key: reference } = configured;
    const key = `${hostname}:${port}${path} ${reference ?? ''}`;
    const bearer = reference === null ? null : resolveKey(reference, this.#environment);
    const url = new URL(`${hostname}:${port}${path}`);
    const server = this.#servers.get(key) ?? new ToolServer({ url, bearer, fetcher: this.#fetcher, clock: this.#intervalClock });
    this.#servers.set(key, server);
    return server;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close())); // no fail point: stops (2)
    await this.#fetcher.close();
  }
}
