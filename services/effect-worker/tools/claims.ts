import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** Changes nothing of a claim of its own, and counts it all the same. A withdrawn one has no claimant. */
const INSERT_CLAIM: NamedStatement = {
  name: 'effect_worker_claim',
  text: `insert into claims (effect_id, claimant) values ($1, $2)
    on conflict (effect_id) do update set claimant = claims.claimant where claims.claimant = excluded.claimant`,
};
const SELECT_CLAIM: NamedStatement = { name: 'effect_worker_claimed', text: 'select 1 as one from claims where effect_id = $1' };

/**
 * Claims a call that must not be made twice.
 * @param claimant the same in each repeat after a transient error, which may have come behind the commit
 * @returns false when another delivery has claimed it
 */
export async function claimCall(database: Queryable, effectId: string, claimant: string): Promise<boolean> {
  const { rowCount } = await database.query(INSERT_CLAIM, [effectId, claimant]); // no fail point: caller
  return rowCount === 1;
}

export async function isClaimed(database: Queryable, effectId: string): Promise<boolean> {
  const { rows } = await database.query(SELECT_CLAIM, [effectId]); // no fail point: reads
  return rows.length > 0;
}
