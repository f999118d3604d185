import type { Clock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { type Environment, resolveSecret } from '#shared/config/secret-ref.ts';
import { ToolServer } from './tool-server.ts';
import { openWatchedFetch, type WatchedFetch } from './watched-fetch.ts';

/** LRU bound, over all configurations. */
const MAX_SERVERS = 256;

/** The tool servers of all configurations; equal entries share one server and connection. */
export class ToolServers {
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #fetcher: WatchedFetch;
  /** Least recently used first. */
  readonly #servers = new Map<string, ToolServer>();

  constructor({ environment, clock }: { environment: Environment; clock: Clock }) {
    this.#environment = environment;
    this.#clock = clock;
    this.#fetcher = openWatchedFetch({ environment, nowMs: () => clock.nowMs() });
  }

  of({ body }: Bundle, serverId: string): ToolServer | null {
    const configured = body.manifest.agent_config.mcps.find(({ id }) => id === serverId);
    if (configured === undefined) return null;
    const { hostname, port, path, api_key: reference } = configured;
    const key = `${hostname}:${port}${path} ${reference ?? ''}`;
    const bearer = reference === null ? null : resolveSecret(reference, this.#environment);
    const server = this.#servers.get(key) ?? new ToolServer({ url: new URL(`${hostname}:${port}${path}`), bearer, fetcher: this.#fetcher, clock: this.#clock });
    this.#servers.delete(key);
    this.#servers.set(key, server);
    this.#evictOldest();
    return server;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close())); // no fail point: stops (2)
    await this.#fetcher.close();
  }

  #evictOldest(): void {
    for (const [key, server] of this.#servers) {
      if (this.#servers.size <= MAX_SERVERS) return;
      this.#servers.delete(key);
      server.close().catch(() => {});
    }
  }
}
