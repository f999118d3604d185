import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

const INSERT_CLAIM: NamedStatement = { name: 'effect_worker_claim', text: 'insert into claims (effect_id) values ($1) on conflict (effect_id) do nothing' };
const SELECT_CLAIM: NamedStatement = { name: 'effect_worker_claimed', text: 'select 1 as one from claims where effect_id = $1' };

/** Claims a call that must not be made twice. @returns false when another delivery has claimed it */
export async function claimCall(database: Queryable, effectId: string): Promise<boolean> {
  const { rowCount } = await database.query(INSERT_CLAIM, [effectId]); // no fail point: caller
  return rowCount === 1;
}

export async function isClaimed(database: Queryable, effectId: string): Promise<boolean> {
  const { rows } = await database.query(SELECT_CLAIM, [effectId]); // no fail point: reads
  return rows.length > 0;
}
