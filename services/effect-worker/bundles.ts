import { readBundle } from '#shared/config/bundle-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';

/** Configurations kept in memory: the one that runs, and those that older runs end on. */
const MAX_CACHED = 16;

/** The configurations that items name. A hash always means the same one, so what was read once is kept. */
export class Bundles {
  readonly #database: Database;
  /** The one used longest ago comes first. */
  readonly #cached = new Map<string, Bundle>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws `config.invalid` when there is none of this hash, or this version can't read it */
  async read(hash: string): Promise<Bundle> {
    const bundle = this.#cached.get(hash) ?? (await readBundle(this.#database, hash));
    if (bundle === null) throw new SwitchyardError('config.invalid', `no configuration ${hash.slice(0, 12)} is stored`);
    this.#cached.delete(hash);
    this.#cached.set(hash, bundle);
    const [oldest] = this.#cached.keys();
    if (oldest !== undefined && this.#cached.size > MAX_CACHED) this.#cached.delete(oldest);
    return bundle;
  }

  /** The one that was stored last; null when there is none yet. */
  async newest(): Promise<Bundle | null> {
    const { rows } = await this.#database.query<{ hash: string }>('select hash from bundles order by created_at desc, hash limit 1');
    return rows[0] === undefined ? null : this.read(rows[0].hash);
  }
}
