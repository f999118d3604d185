import { setTimeout as pause } from 'node:timers/promises';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ToolLists } from './tool-lists.ts';

/** Doubled after each. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Poll for a newer configuration, once all servers are listed. */
const POLL_MS = 30_000;

export interface DiscoverDeps {
  bundles: BundleCache;
  lists: ToolLists;
  log: Log;
}

/**
 * Lists the tools of every server of the newest configuration in the background, until each has responded. So the first run finds stored
 * lists, and a missing server is logged before any run.
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

async function discover({ bundles, lists, log }: DiscoverDeps, signal: AbortSignal): Promise<void> {
  const listed = new Set<string>();
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; ) {
    let missing = 1;
    try {
      const bundle = await bundles.newest(); // no fail point: reads
      const servers = bundle?.body.manifest.agent_config.mcps.map(({ id }) => id) ?? [];
      const unlisted = bundle === null ? [] : servers.filter((id) => !listed.has(`${bundle.hash} ${id}`)).map((id) => ({ id, bundle }));
      // no fail point: inside (2)
      const found = await Promise.all(
        unlisted.map(async ({ id, bundle }) => ({ key: `${bundle.hash} ${id}`, listing: await lists.current(bundle, id, { isProbe: true }) })),
      );
      for (const { key, listing } of found) if ('listHash' in listing) listed.add(key);
      missing = bundle === null ? 1 : found.filter(({ listing }) => !('listHash' in listing)).length;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the tools could not be discovered yet');
    }
    await pause(missing > 0 ? pauseMs : POLL_MS, undefined, { signal }).catch(() => {}); // no fail point: pauses
    pauseMs = missing > 0 ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
  }
}
