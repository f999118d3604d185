import { setTimeout as pause } from 'node:timers/promises';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import type { Log } from '#shared/telemetry/log.ts';
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
  lists: Pick<ToolLists, 'current' | 'isStale'>;
  log: Log;
  pollMs?: number;
}

/**
 * Lists the tools of every server of the newest configuration in the background, until each has responded, and again after each change that it
 * announces. So the first run and each turn find stored lists, and a missing server is logged before any run.
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
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; ) {
    let missing = 1;
    try {
      const bundle = await bundles.newest(); // no fail point: reads
      const servers = bundle?.body.manifest.agent_config.mcps.map(({ id }) => id) ?? [];
      const isDue = (id: string, key: string) => lists.isStale(bundle, id) || performance.now() - (listed.get(key) ?? Number.NEGATIVE_INFINITY) >= REFRESH_MS;
      const unlisted = bundle === null ? [] : servers.filter((id) => isDue(id, `${bundle.hash} ${id}`)).map((id) => ({ id, bundle }));
      // no fail point: inside (2)
      const found = await Promise.all(
        unlisted.map(async ({ id, bundle }) => ({ key: `${bundle.hash} ${id}`, listing: await lists.current(bundle, id, { isProbe: true }) })),
      );
      for (const { key, listing } of found) if ('listHash' in listing) listed.set(key, performance.now());
      missing = bundle === null ? 1 : found.filter(({ listing }) => !('listHash' in listing)).length;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the tools could not be discovered yet');
    }
    await pause(missing > 0 ? pauseMs : pollMs, undefined, { signal }).catch(() => {}); // no fail point: pauses
    pauseMs = missing > 0 ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
  }
}
