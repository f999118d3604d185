import type { NamedStatement, Queryable } from '../storage/database.ts';
import { bundleBody } from './bundle-body.ts';
import { canonicalJson } from './canonical-json.ts';
import type { Bundle } from './load-bundle.ts';
import { check, configInvalid, sentenceOf } from './problems.ts';

const STORE: NamedStatement = { name: 'store-bundle', text: 'insert into bundles (hash, body) values ($1, $2) on conflict (hash) do nothing' };
const READ: NamedStatement = { name: 'read-bundle', text: 'select body from bundles where hash = $1' };

/** Stores a bundle for the turns and runs that refer to its hash. Idempotent. */
export async function storeBundle(database: Queryable, { hash, body }: Bundle): Promise<void> {
  await database.query(STORE, [hash, canonicalJson(body)]);
}

/**
 * @returns null when no bundle of this hash is stored
 * @throws `config.invalid` when another version of the program stored documents that this one can't read
 */
export async function readBundle(database: Queryable, hash: string): Promise<Bundle | null> {
  const { rows } = await database.query<{ body: unknown }>(READ, [hash]);
  const [row] = rows;
  if (row === undefined) return null;
  const { value: body, problems } = check(bundleBody, row.body);
  if (body === null) throw configInvalid(`the stored configuration ${hash.slice(0, 12)}`, problems.map(sentenceOf));
  return { hash, body };
}
