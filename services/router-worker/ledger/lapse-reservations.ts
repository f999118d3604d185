import type { UsageLog } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { LAPSE_RESERVATIONS } from './ledger-sql.ts';

/** Per statement, which holds the locks of their keys. */
const MAX_LAPSED = 1_000;

export interface LapsedKey {
  keyId: string;
  amountNano: number;
  reservations: number;
}

export interface LapseDeps {
  database: Queryable;
  usage: Pick<UsageLog, 'backlog'>;
  /** The database's. */
  clock: Clock;
}

/**
 * Ends the reservations of calls that died without a usage record. Only those whose time was over before the oldest record that is not in the ledger yet
 * was stored: a record that is merely late must find its room, however long the database was away. A call's record is stored by its deadline, a minute
 * before its reservation's end, so clocks may differ by much of that.
 *
 * @throws the bus's and the database's errors
 */
export async function lapseReservations({ database, usage, clock }: LapseDeps): Promise<LapsedKey[]> {
  // Before the look: what is stored after it is not in the backlog.
  const nowMs = clock.nowMs();
  const { oldestAtMs } = await usage.backlog();
  const { rows } = await database.query<{ key_id: string; amount_nano: number; reservations: number }>(LAPSE_RESERVATIONS, [
    oldestAtMs === null ? nowMs : Math.min(nowMs, oldestAtMs),
    MAX_LAPSED,
  ]);
  return rows.map((row) => ({ keyId: row.key_id, amountNano: row.amount_nano, reservations: row.reservations }));
}
