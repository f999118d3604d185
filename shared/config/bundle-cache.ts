import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database } from '../storage/database.ts';
import { readBundle } from './bundle-store.ts';
import type { Bundle } from './load-bundle.ts';

/** The current bundle, and those of older turns and runs. */
const MAX_CACHED = 16;

/** LRU cache of stored bundles. Never invalidated: the key is a content hash. */
export class BundleCache {
  readonly #database: Database;
  /** Least recently used first. */
  readonly #cached = new Map<string, Bundle>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws `config.invalid` when no bundle has this hash, or this version can't read it */
  async read(hash: string): Promise<Bundle> {
    const bundle = this.#cached.get(hash) ?? (await readBundle(this.#database, hash));
    if (bundle === null) throw new SwitchyardError('config.invalid', `no configuration ${hash.slice(0, 12)} is stored`);
    this.#cached.delete(hash);
    this.#cached.set(hash, bundle);
    const [oldest] = this.#cached.keys();
    if (oldest !== undefined && this.#cached.size > MAX_CACHED) this.#cached.delete(oldest);
    return bundle;
  }

  /** Null when none is stored yet. */
  async newest(): Promise<Bundle | null> {
    const { rows } = await this.#database.query<{ hash: string }>('select hash from bundles order by created_at desc, hash limit 1');
    return rows[0] === undefined ? null : this.read(rows[0].hash);
  }
}
