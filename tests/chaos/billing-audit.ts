import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import type { Outcome } from './billed-call.ts';
import { type BillingEnvironment, type MadeKey, TOTAL_MS } from './billing-environment.ts';

/** What is compared, for the line that a case prints. */
export interface Totals {
  calls: number;
  /** Calls that the provider was asked for. */
  asked: number;
  rows: number;
  refused: number;
  unavailable: number;
  /** Connections that were cut with their gateway. */
  cut: number;
  /** Requests to the provider beyond one for each call. */
  askedAgain: number;
  /** Requests to the provider of the call that has most. */
  mostAsked: number;
  /** Of calls that came to nothing: they lapsed. */
  reservationsLeft: number;
  /** Calls that a provider was asked for and that have no row. */
  unbilled: number;
  spentNano: number;
}

interface Row {
  generation_id: string;
  key_id: string;
  cost_nano: number;
  call: string;
  /** The usage record. */
  record: { attempts: unknown[] };
}

/** For redeliveries of a dead worker's items, and on a busy machine. */
const QUIET = { timeoutMs: 90_000 };
const LAPSE_AFTER_MS = 60_000;
const LAPSED = { timeoutMs: 60_000 };
const SAMPLE_EVERY_MS = 50;
const PAYMENT_REQUIRED = 402;

const OVERSPENT = `
  select k.id from router_keys k left join key_spend s on s.key_id = k.id
  where s.total_nano + s.reserved_nano > k.limit_nano
    or (select sum(cost_nano) from usage_ledger u where u.key_id = k.id) > k.limit_nano
    or s.reserved_nano <> coalesce((select sum(amount_nano) from reservations r where r.key_id = k.id), 0)
    or s.total_nano <> coalesce((select sum(cost_nano) from usage_ledger u where u.key_id = k.id), 0)`;
const BOTH = 'select call_id from reservations join usage_ledger on generation_id = call_id';

/**
 * Looks again and again, in one snapshot each: no key has spent and reserved more than its limit, its sums are those of its rows, and no call is both in the
 * ledger and reserved. @returns its end throws the first violation, and otherwise returns the number of looks
 */
export function watchLimits({ database }: BillingEnvironment): () => Promise<number> {
  const stop = new AbortController();
  const violations: unknown[] = [];
  let looks = 0;
  const watching = (async () => {
    while (!stop.signal.aborted) {
      // The server may be away.
      const found = await database
        .query(`select 'limit' as what, id from (${OVERSPENT}) o union all select 'both', call_id from (${BOTH}) b`)
        .catch(() => null);
      if (found !== null) {
        looks += 1;
        violations.push(...found.rows);
      }
      await delay(SAMPLE_EVERY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return async () => {
    stop.abort();
    await watching;
    expect(violations.slice(0, 1), 'a key has spent more than its limit, or a settled call is reserved').toEqual([]);
    return looks;
  };
}

interface Expected {
  /** All that were used. */
  keys: readonly MadeKey[];
  /** Only calls that completed must have a row. */
  leavesUnbilled?: boolean | undefined;
  /** As of the fault. */
  losesFrames?: boolean | undefined;
  /** Whether calls of other keys go on, so that the queue need not be empty. */
  isUnderLoad?: boolean | undefined;
}

/** Compares all calls of a case with the ledger, once nothing is under way. @throws the first difference */
export async function checkBills(
  environment: BillingEnvironment,
  outcomes: readonly Outcome[],
  { keys, leavesUnbilled = false, losesFrames = false, isUnderLoad = false }: Expected,
): Promise<Totals> {
  const { database, upstream } = environment;
  const isBilled = ({ end }: Outcome) => !leavesUnbilled || end === 'completed';
  expect(outcomes.filter(({ fault }) => fault !== null).slice(0, 3), 'a client was answered wrongly').toEqual([]);
  const asked = outcomes.filter(({ name }) => upstream.calls(name).length > 0);
  await eventually(async () => {
    const missing = missingIn(await rowsOf(environment, keys), asked.filter(isBilled));
    expect(missing.slice(0, 3), `${missing.length} calls are not in the ledger`).toEqual([]);
    if (!isUnderLoad) expect(await environment.queued(), 'calls are in the queue').toBe(0);
    return true;
  }, QUIET);
  await endInterims(environment, keys);
  const rows = await rowsOf(environment, keys);
  const byCall = new Map(rows.map((row) => [row.call, row]));
  expect(byCall.size, 'a call has more than one row').toBe(rows.length);
  const answered = outcomes.filter((one) => one.status === 200 && one.end !== null && isBilled(one));
  expect(missingIn(rows, answered), 'an answer has no row').toEqual([]);
  for (const outcome of outcomes) checkBill(outcome, byCall.get(outcome.name), { requests: upstream.calls(outcome.name).length, losesFrames });
  const reservationsLeft = await lapseReservations(environment, keys);
  for (const key of keys) await checkKey(environment, key, rows);
  expect((await database.query('select id, reason from dead_letters')).rows, 'there are dead letters').toEqual([]);
  const requests = asked.map(({ name }) => upstream.calls(name).length);
  return {
    calls: outcomes.length,
    asked: asked.length,
    rows: rows.length,
    refused: outcomes.filter(({ status }) => status === PAYMENT_REQUIRED).length,
    unavailable: outcomes.filter(({ status }) => status !== null && status > PAYMENT_REQUIRED).length,
    cut: outcomes.filter(({ status, end, fault }) => fault === null && (status === null || (status === 200 && end === null))).length,
    askedAgain: requests.reduce((sum, count) => sum + count - 1, 0),
    mostAsked: Math.max(0, ...requests),
    reservationsLeft,
    unbilled: missingIn(rows, asked).length,
    spentNano: rows.reduce((sum, row) => sum + row.cost_nano, 0),
  };
}

async function rowsOf({ database }: BillingEnvironment, keys: readonly MadeKey[]): Promise<Row[]> {
  const { rows } = await database.query<Row>(
    `select generation_id, key_id, cost_nano::float8 as cost_nano, record->>'user' as call, record from usage_ledger where key_id = any($1)`,
    [keys.map(({ id }) => id)],
  );
  return rows;
}

function missingIn(rows: readonly Row[], asked: readonly Outcome[]): string[] {
  const written = new Set(rows.map(({ call }) => call));
  return asked.flatMap(({ name }) => (written.has(name) ? [] : [name]));
}

/**
 * An answer costs what it states, and content costs something. Of a call that two workers executed, since the first was taken for dead, one record counts: the
 * client may have the answer of the other. It never costs more than that states.
 */
function checkBill(outcome: Outcome, row: Row | undefined, { requests, losesFrames }: { requests: number; losesFrames: boolean }): void {
  const { name, key, status, end, generationId, text, costNano } = outcome;
  if (status === PAYMENT_REQUIRED) expect({ name, row, requests }).toEqual({ name, row: undefined, requests: 0 });
  if (row === undefined) return;
  expect(row.key_id, name).toBe(key.id);
  if (generationId !== null) expect(row.generation_id, name).toBe(generationId);
  const found = JSON.stringify({ outcome, record: row.record, requests });
  if (requests > 1) {
    if (costNano !== null) expect(row.cost_nano, found).toBeLessThanOrEqual(costNano);
    if (costNano !== null && row.cost_nano !== costNano) console.info(`another execution is billed: ${found}`);
    return;
  }
  const isLost = losesFrames && end !== 'completed' && row.record.attempts.length === 0;
  if (text !== '' && !isLost) expect(row.cost_nano, `shown and without a cost: ${found}`).toBeGreaterThan(0);
  if (costNano !== null) expect(row.cost_nano, found).toBe(costNano);
}

/** Those of calls that no worker has ended are billed in time, which is brought forward here. */
async function endInterims({ database }: BillingEnvironment, keys: readonly MadeKey[]): Promise<void> {
  const ofKeys = [keys.map(({ id }) => id)];
  const { rowCount } = await database.query(`update interim_records set until = now() - interval '1 second' where record->>'keyId' = any($1)`, ofKeys);
  if (rowCount === 0) return;
  await eventually(async () => (await database.query(`select 1 from interim_records where record->>'keyId' = any($1)`, ofKeys)).rows.length === 0, LAPSED);
}

/** Those that are left are of calls without a row, and end in time: their time is brought forward here. @returns how many there were */
async function lapseReservations({ database }: BillingEnvironment, keys: readonly MadeKey[]): Promise<number> {
  const ofKeys = [keys.map(({ id }) => id)];
  const { rows } = await database.query<{ call_id: string; left_ms: number }>(
    'select call_id, extract(epoch from until - now())::float8 * 1000 as left_ms from reservations where key_id = any($1)',
    ofKeys,
  );
  for (const { call_id: id, left_ms: leftMs } of rows) expect(leftMs, id).toBeLessThanOrEqual(TOTAL_MS + LAPSE_AFTER_MS);
  if (rows.length === 0) return 0;
  await database.query(`update reservations set until = now() - interval '1 second' where key_id = any($1)`, ofKeys);
  await eventually(async () => (await database.query('select 1 from reservations where key_id = any($1)', ofKeys)).rows.length === 0, LAPSED);
  return rows.length;
}

async function checkKey(environment: BillingEnvironment, key: MadeKey, rows: readonly Row[]): Promise<void> {
  const sum = rows.filter(({ key_id: id }) => id === key.id).reduce((total, row) => total + row.cost_nano, 0);
  if (key.limitNano !== null) expect(sum, `${key.id} has spent more than its limit`).toBeLessThanOrEqual(key.limitNano);
  expect(await environment.usageOf(key), key.id).toBe(sum);
  const { rows: spent } = await environment.database.query<{ total: number; reserved: number }>(
    'select total_nano::float8 as total, reserved_nano::float8 as reserved from key_spend where key_id = $1',
    [key.id],
  );
  expect(spent[0] ?? { total: 0, reserved: 0 }, key.id).toEqual({ total: sum, reserved: 0 });
}
