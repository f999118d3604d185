import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { bookUsage, startLedger } from './ledger.ts';
import { clearLedger, countOf, readRecordOf, reserve, spendOf } from './test-support/usage-records.ts';

let database: Database;
let bus: Bus;
let stops: (() => Promise<void>)[];
let complaints: string[];
const log: Log = { ...silentLog, error: (_, message) => complaints.push(message) };

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  complaints = [];
  stops = [];
  await clearLedger(database);
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterEach(async () => {
  for (const stop of stops) await stop();
  await bus.close();
  await database.query('delete from bus_usage');
});

function start(over: Database = database, from: Bus = bus, lapseEveryMs?: number) {
  const metrics = openMetrics();
  const deps = { usage: from.usage, database: over, clock: systemClock, log, metrics };
  const { stop } = startLedger(lapseEveryMs === undefined ? deps : { ...deps, lapseEveryMs });
  stops.push(stop);
  return { metrics, stop };
}

/** The database, with a fault at each statement of the ledger while there is one. */
function withFault(fault: () => Error | null, when: 'before' | 'after'): Database {
  const around = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const error = fault();
    if (error === null) return work();
    if (when === 'after') await work();
    throw error;
  };
  return {
    query: (statement, parameters) => around(() => database.query(statement, parameters)),
    transaction: (work) => around(() => database.transaction(work)),
    close: () => database.close(),
  };
}

const append = (generationId: string, changes: Parameters<typeof readRecordOf>[1] = {}) =>
  bus.usage.append(generationId, readRecordOf(generationId, changes).body);
const isEmptied = () => expect.poll(async () => (await bus.usage.backlog()).records, { timeout: 60_000 }).toBe(0);
const deadLetters = async () =>
  (await database.query<{ id: string; source: string; reason: string; body: string }>('select * from dead_letters order by id')).rows;

it('moves records from the log to the ledger, and counts them', async () => {
  const { metrics } = start();
  await reserve(database, 'gen-1', 'key-a', 100);
  await Promise.all([append('gen-1', { reserved: true }), append('gen-2'), append('gen-3', { keyId: 'key-b' })]);
  await isEmptied();

  expect(await countOf(database, 'usage_ledger')).toBe(3);
  expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 30, reserved_nano: 0 });
  expect(await metrics.text()).toContain('switchyard_usage_records_total{outcome="written"} 3');
  expect(await metrics.text()).toMatch(/^switchyard_usage_backlog 0$/m);
});

it('DESIGN 8: while the database is away records wait in the log, and are billed once when it is back', async () => {
  let isAway = true;
  const { metrics } = start(withFault(() => (isAway ? new SwitchyardError('service.unreachable', 'away') : null), 'before'));
  await Promise.all(Array.from({ length: 20 }, (_, index) => append(`gen-${index}`)));
  await expect.poll(async () => (await bus.usage.backlog()).records).toBe(20);
  expect(await countOf(database, 'usage_ledger')).toBe(0);
  expect(await metrics.text()).toMatch(/^switchyard_usage_backlog 20$/m);
  isAway = false;
  await isEmptied();

  expect(await countOf(database, 'usage_ledger')).toBe(20);
  expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 300 });
  expect(await deadLetters()).toEqual([]);
});

it('DESIGN 8: a batch that was committed and not acknowledged is billed once', async () => {
  let faults = 2;
  start(
    withFault(() => {
      faults -= 1;
      return faults >= 0 ? new SwitchyardError('service.unreachable', 'the reply was lost') : null;
    }, 'after'),
  );
  await reserve(database, 'gen-1', 'key-a', 100);
  await append('gen-1', { reserved: true });
  await append('gen-2');
  await isEmptied();

  expect(faults).toBeLessThan(0);
  expect(await countOf(database, 'usage_ledger')).toBe(2);
  expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 30, reserved_nano: 0 });
});

it('DESIGN 8: a worker killed between the commit and the ack bills nothing twice', async () => {
  let isCommitted = () => {};
  const committed = new Promise<void>((resolve) => {
    isCommitted = resolve;
  });
  // Like a killed process it never resolves, and so never acknowledges.
  bus.usage.consume(
    async (messages) => {
      await bookUsage(messages, { database, log, metrics: openMetrics() });
      isCommitted();
      await new Promise(() => {});
    },
    { maxBatch: 10 },
  );
  await append('gen-1');
  await committed;
  const next = await openMemoryBus({ database, clock: systemClock });
  const { metrics, stop } = start(database, next);
  await expect.poll(async () => (await next.usage.backlog()).records).toBe(0);
  await stop();
  await next.close();
  // The killed one is not waited for.
  bus = next;

  expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 15 });
  expect(await metrics.text()).toContain('switchyard_usage_records_total{outcome="repeated"} 1');
});

it('keeps what it can not read or write as dead letters, and writes all else of the batch', async () => {
  const good = Array.from({ length: 40 }, (_, index) => `gen-${index}`);
  const late = readRecordOf('too-late', { createdAtMs: 1e300 }).body;
  const newer = JSON.stringify({ ...readRecordOf('newer').record, v: 2 });
  await Promise.all([
    ...good.slice(0, 20).map((id) => append(id)),
    bus.usage.append('text', 'not JSON'),
    bus.usage.append('newer', newer),
    bus.usage.append('too-late', late),
    ...good.slice(20).map((id) => append(id)),
  ]);
  const { metrics } = start();
  await isEmptied();

  expect(await countOf(database, 'usage_ledger')).toBe(40);
  expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 600 });
  expect((await deadLetters()).map(({ id, source, body }) => ({ id, source, body }))).toEqual([
    { id: 'newer', source: 'usage', body: newer },
    { id: 'text', source: 'usage', body: 'not JSON' },
    { id: 'too-late', source: 'usage', body: late },
  ]);
  expect(complaints).toHaveLength(3);
  expect(await metrics.text()).toContain('switchyard_dead_letters_total{source="usage"} 3');
});

it('writes records of every form: of an earlier order, over several lines, and not one that only begins as a record', async () => {
  const record = readRecordOf('gen-1', { keyId: 'key "a"', metadata: { note: 'one\ntwo' } }).record;
  const { keyId, ...rest } = readRecordOf('gen-2').record;
  const cut = readRecordOf('gen-4').body.slice(0, -1);
  await bus.usage.append('gen-1', JSON.stringify(record));
  await bus.usage.append('gen-2', JSON.stringify({ ...rest, keyId }));
  await bus.usage.append('gen-3', JSON.stringify(readRecordOf('gen-3').record, null, 2));
  await bus.usage.append('gen-4', cut);
  await append('gen-5');
  start();
  await isEmptied();

  const { rows } = await database.query<{ key: string; note: string | null }>(
    `select key_id as key, record -> 'metadata' ->> 'note' as note from usage_ledger order by generation_id`,
  );
  expect(rows).toEqual([
    { key: 'key "a"', note: 'one\ntwo' },
    { key: 'key-a', note: null },
    { key: 'key-a', note: null },
    { key: 'key-a', note: null },
  ]);
  expect((await deadLetters()).map(({ id, body }) => ({ id, body }))).toEqual([{ id: 'gen-4', body: cut }]);
});

it('delivers a batch again when the dead letter of one of its records could not be stored', async () => {
  let isAway = true;
  start(withFault(() => (isAway ? new SwitchyardError('service.unreachable', 'away') : null), 'before'));
  await bus.usage.append('text', 'not JSON');
  await new Promise((resolve) => setImmediate(resolve));
  expect((await bus.usage.backlog()).records).toBe(1);
  isAway = false;
  await isEmptied();

  expect((await deadLetters()).map(({ id }) => id)).toEqual(['text']);
});

it('ends the reservations of dead calls by itself, once their records would be in the ledger', async () => {
  await reserve(database, 'gen-dead', 'key-a', 100, -1_000);
  const { metrics } = start(database, bus, 5);
  await vi.waitFor(async () => expect(await countOf(database, 'reservations')).toBe(0), { timeout: 60_000 });

  expect(await spendOf(database, 'key-a')).toMatchObject({ reserved_nano: 0 });
  await expect.poll(() => metrics.text()).toContain('switchyard_reservations_lapsed_total 1');
});
