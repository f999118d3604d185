import { LRUCache } from 'lru-cache';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { BundleStore } from './bundle-store.ts';
import type { Bundle } from './load-bundle.ts';

/** The current bundle, and those of older turns and runs. */
const MAX_CACHED = 16;

/** LRU cache of stored bundles. Never invalidated: the key is a content hash. */
export class BundleCache {
  readonly #store: BundleStore;
  readonly #cached = new LRUCache<string, Bundle>({ max: MAX_CACHED });

  constructor(store: BundleStore) {
    this.#store = store;
  }

  /** @throws `config.invalid` when no bundle has this hash, or this version can't read it */
  async read(hash: string): Promise<Bundle> {
    const bundle = this.#cached.get(hash) ?? (await this.#store.read(hash));
    if (bundle === null) throw new SwitchyardError('config.invalid', `no configuration ${hash.slice(0, 12)} is stored`);
    this.#cached.set(hash, bundle);
    return bundle;
  }

  /** Null when none is stored yet. */
  async newest(): Promise<Bundle | null> {
    const hash = await this.#store.newestHash();
    return hash === null ? null : this.read(hash);
  }
}
