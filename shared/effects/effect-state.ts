import type { NamedStatement, Queryable } from '../storage/database.ts';

/** The bus forgets acks and dedupe windows across a restart: an item this old may have been done, though it comes for the first time. */
const OLD_ITEM_MS = 60_000;

const READ_STATE: NamedStatement = { name: 'effect_state', text: `select bool_or(state = 'open') as open from effects where id = $1` };

interface Delivered {
  /** The number of the delivery, 1 at the first. */
  deliveryCount: number;
  publishedAtMs: number;
}

/** Whether somebody may have done this work before, so that its effect's row is to be asked first. First deliveries ask nothing. */
export function mayBeDoneAlready({ deliveryCount, publishedAtMs }: Delivered, republished: boolean, nowMs: number): boolean {
  return deliveryCount > 1 || republished || nowMs - publishedAtMs > OLD_ITEM_MS;
}

/** Whether an actor still waits for the effect; null when there is no row of it. */
export async function isEffectOpen(database: Queryable, effectId: string): Promise<boolean | null> {
  const { rows } = await database.query<{ open: boolean | null }>(READ_STATE, [effectId]);
  return rows[0]?.open ?? null;
}
