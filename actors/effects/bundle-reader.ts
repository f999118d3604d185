import { readBundle } from '#shared/config/bundle-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';

/** The current one, and a few more during a rollout. */
const MAX_BUNDLES = 8;

/** Cached: the content of a hash never changes. */
export function bundleReader(database: Database): (hash: string) => Promise<Bundle> {
  const known = new Map<string, Bundle>();
  return async (hash) => {
    const cached = known.get(hash);
    if (cached !== undefined) return cached;
    const bundle = await readBundle(database, hash);
    if (bundle === null) throw new SwitchyardError('config.invalid', `there is no configuration ${hash.slice(0, 12)}`);
    known.set(hash, bundle);
    for (const oldest of known.keys()) {
      if (known.size <= MAX_BUNDLES) break;
      known.delete(oldest);
    }
    return bundle;
  };
}
