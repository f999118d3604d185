import { setTimeout as pause } from 'node:timers/promises';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { namedTools } from './named-tools.ts';
import type { ToolLists } from './tool-lists.ts';

/** Doubled after each. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Poll for a newer configuration and for announced changes, once all servers are listed. */
const POLL_MS = 30_000;
/** A turn takes the stored lists as they are: so old they become at servers that announce nothing. */
const REFRESH_MS = 300_000;

export interface DiscoverDeps {
  bundles: Pick<BundleCache, 'newest'>;
  lists: Pick<ToolLists, 'current' | 'isStale' | 'tool'>;
  log: Log;
  pollMs?: number;
}

/**
 * Lists the tools of every server of the newest configuration in the background, until each has responded, and again after each change that it
 * announces. So the first run and each turn find stored lists, and a missing server or tool is logged before any run.
 */
export function discoverTools(deps: DiscoverDeps): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const running = discover(deps, stopped.signal);
  return {
    async stop() {
      stopped.abort();
      await running; // no fail point: stops
    },
  };
}

async function discover({ bundles, lists, log, pollMs = POLL_MS }: DiscoverDeps, signal: AbortSignal): Promise<void> {
  /** When each was listed last. */
  const listed = new Map<string, number>();
  /** Hash of the list that was compared last with what the documents name. */
  const compared = new Map<string, string>();
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; ) {
    let missing = 1;
    try {
      const bundle = await bundles.newest(); // no fail point: reads
      const servers = bundle?.body.manifest.agent_config.mcps.map(({ id }) => id) ?? [];
      const isDue = (id: string, key: string) => lists.isStale(bundle, id) || performance.now() - (listed.get(key) ?? Number.NEGATIVE_INFINITY) >= REFRESH_MS;
      const unlisted = bundle === null ? [] : servers.filter((id) => isDue(id, `${bundle.hash} ${id}`)).map((id) => ({ id, bundle }));
      // no fail point: inside (2)
      const found = await Promise.all(
        unlisted.map(async ({ id, bundle }) => ({ key: `${bundle.hash} ${id}`, id, bundle, listing: await lists.current(bundle, id, { isProbe: true }) })),
      );
      for (const { key, id, bundle, listing } of found) {
        if (!('listHash' in listing)) continue;
        listed.set(key, performance.now());
        if (compared.get(key) === listing.listHash) continue;
        const tools = await missingTools(bundle, id, listing.listHash, lists); // no fail point: reads
        compared.set(key, listing.listHash);
        if (tools.length > 0) log.warn({ server: id, tools }, 'the documents name tools that the server does not list: they can not be called');
      }
      missing = bundle === null ? 1 : found.filter(({ listing }) => !('listHash' in listing)).length;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the tools could not be discovered yet');
    }
    await pause(missing > 0 ? pauseMs : pollMs, undefined, { signal }).catch(() => {}); // no fail point: pauses
    pauseMs = missing > 0 ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
  }
}

async function missingTools({ body }: Bundle, serverId: string, listHash: string, lists: Pick<ToolLists, 'tool'>): Promise<string[]> {
  const missing: string[] = [];
  for (const name of namedTools(body).get(serverId) ?? []) {
    if ((await lists.tool(listHash, name)) === null) missing.push(name); // no fail point: reads
  }
  return missing;
}
