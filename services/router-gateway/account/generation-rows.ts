import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** A row of `usage_ledger`. */
export interface GenerationRow {
  generationId: string;
  keyId: string;
  /** As it was read: perhaps of a newer release. */
  record: unknown;
}

/** The rows of the ledger with one of the ids, in any order. */
export async function readGenerations(database: Queryable, generationIds: readonly string[]): Promise<GenerationRow[]> {
  const { rows } = await database.query<{ id: string; key_id: string; record: unknown }>(SELECT, [generationIds]);
  return rows.map(({ id, key_id, record }) => ({ generationId: id, keyId: key_id, record }));
}

const SELECT: NamedStatement = {
  name: 'router-gateway-generations',
  // Whole: an operator of json would refuse a record with a NUL in any of its texts.
  text: 'select generation_id as id, key_id, record from usage_ledger where generation_id = any($1::text[])',
};
