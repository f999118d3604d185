import type { NamedStatement, Queryable } from '../storage/database.ts';
import { bundleBody } from './bundle-body.ts';
import { canonicalJson } from './canonical-json.ts';
import type { Bundle } from './load-bundle.ts';
import { check, configInvalid, sentenceOf } from './problems.ts';

const STORE: NamedStatement = {
  name: 'store-bundle',
  text: 'insert into bundles (hash, body) values ($1, $2) on conflict (hash) do update set created_at = excluded.created_at',
};
const NEWEST = 'select hash from bundles order by created_at desc, hash limit 1';
const READ: NamedStatement = { name: 'read-bundle', text: 'select body from bundles where hash = $1' };

export interface BundleStore {
  /**
   * @returns null when no bundle of this hash is stored
   * @throws `config.invalid` when another version of the program stored documents that this one can't read
   */
  read(hash: string): Promise<Bundle | null>;
  /** Of the bundle that was stored last, anew or again; null when none is stored yet. */
  newestHash(): Promise<string | null>;
}

/** Stores a bundle for the turns and runs that refer to its hash, and makes it the newest: a process starts with it. */
export async function storeBundle(database: Queryable, { hash, body }: Bundle): Promise<void> {
  await database.query(STORE, [hash, canonicalJson(body)]);
}

export function bundleStore(database: Queryable): BundleStore {
  return {
    async read(hash) {
      const { rows } = await database.query<{ body: unknown }>(READ, [hash]);
      const [row] = rows;
      if (row === undefined) return null;
      const { value: body, problems } = check(bundleBody, row.body);
      if (body === null) throw configInvalid(`the stored configuration ${hash.slice(0, 12)}`, problems.map(sentenceOf));
      return { hash, body };
    },
    async newestHash() {
      const { rows } = await database.query<{ hash: string }>(NEWEST);
      return rows[0]?.hash ?? null;
    },
  };
}
