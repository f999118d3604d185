import { USAGE_RECORD_VERSION, type UsageRecord, usageRecordText } from '#bus/messages/usage.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { ReadRecord } from '../write-usage.ts';

/** A record of a call that was made now. */
function usageRecordOf(generationId: string, changes: Partial<UsageRecord> = {}): UsageRecord {
  const createdAtMs = changes.createdAtMs ?? Date.now();
  return {
    v: USAGE_RECORD_VERSION,
    generationId,
    keyId: 'key-a',
    reserved: false,
    createdAtMs,
    model: 'acme/model',
    provider: 'one',
    tokens: { prompt: 10, completion: 5, reasoning: 2, cached: 0, cacheWrite: 0 },
    costNano: 15,
    kind: 'client',
    surface: 'chat-completions',
    endedAtMs: createdAtMs + 40,
    streamed: true,
    cancelled: false,
    providerName: 'One',
    upstreamId: null,
    estimated: false,
    attempts: [],
    finishReason: 'stop',
    nativeFinishReason: 'stop',
    sessionId: null,
    user: null,
    metadata: null,
    serviceTier: null,
    ...changes,
  };
}

export function readRecordOf(generationId: string, changes: Partial<UsageRecord> = {}): ReadRecord & { record: UsageRecord } {
  const record = usageRecordOf(generationId, changes);
  return { record, body: usageRecordText(record) };
}

/** Inserts a reservation, as an admission does. @param untilMs from now; negative: it is over */
export async function reserve(database: Queryable, callId: string, keyId: string, amountNano: number, untilMs = 60_000): Promise<void> {
  await reserveAll(database, [{ generationId: callId, keyId }], amountNano, untilMs);
}

/** The same of many calls, each of the same amount. */
export async function reserveAll(
  database: Queryable,
  calls: readonly Pick<UsageRecord, 'generationId' | 'keyId'>[],
  amountNano: number,
  untilMs = 60_000,
): Promise<void> {
  const keys = calls.map(({ keyId }) => keyId);
  await database.query(
    `insert into key_spend (key_id, day, week, month, reserved_nano)
     select key_id, now(), date_trunc('week', now()), date_trunc('month', now()), count(*) * $2::bigint from unnest($1::text[]) as key_id group by key_id
     on conflict (key_id) do update set reserved_nano = key_spend.reserved_nano + excluded.reserved_nano`,
    [keys, amountNano],
  );
  await database.query(
    `insert into reservations (call_id, key_id, amount_nano, until)
     select call_id, key_id, $3::bigint, now() + make_interval(secs => $4) from unnest($1::text[], $2::text[]) as calls (call_id, key_id)`,
    [calls.map(({ generationId }) => generationId), keys, amountNano, untilMs / 1_000],
  );
}

export interface Spend {
  total_nano: number;
  day: string;
  day_nano: number;
  week: string;
  week_nano: number;
  month: string;
  month_nano: number;
  reserved_nano: number;
}

/** Null: the key has no row. */
export async function spendOf(database: Queryable, keyId: string): Promise<Spend | null> {
  const { rows } = await database.query<Spend>(
    `select total_nano, day::text as day, day_nano, week::text as week, week_nano, month::text as month, month_nano, reserved_nano
     from key_spend where key_id = $1`,
    [keyId],
  );
  return rows[0] ?? null;
}

export async function countOf(database: Queryable, table: 'usage_ledger' | 'reservations'): Promise<number> {
  return (await database.query<{ count: number }>(`select count(*)::int as count from ${table}`)).rows[0]?.count ?? 0;
}

export async function clearLedger(database: Queryable): Promise<void> {
  for (const table of ['usage_ledger', 'reservations', 'key_spend', 'dead_letters']) await database.query(`delete from ${table}`);
}
