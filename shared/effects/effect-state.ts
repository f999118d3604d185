import type { NamedStatement, Queryable } from '../storage/database.ts';

/** A restarted broker forgets acks and dedupe windows: an older item may have been done, even at its first delivery. */
const OLD_ITEM_MS = 60_000;

const READ_STATE: NamedStatement = { name: 'effect_state', text: `select bool_or(state = 'open') as open from effects where id = $1` };

interface Delivered {
  /** From 1. */
  deliveryCount: number;
  publishedAtMs: number;
}

/** Whether the item may have been done before, so that its effect's row must be read first. */
export function mayBeDoneAlready({ deliveryCount, publishedAtMs }: Delivered, republished: boolean, nowMs: number): boolean {
  return deliveryCount > 1 || republished || nowMs - publishedAtMs > OLD_ITEM_MS;
}

/** Whether an actor still awaits the effect; null without a row. */
export async function isEffectOpen(database: Queryable, effectId: string): Promise<boolean | null> {
  const { rows } = await database.query<{ open: boolean | null }>(READ_STATE, [effectId]);
  return rows[0]?.open ?? null;
}
