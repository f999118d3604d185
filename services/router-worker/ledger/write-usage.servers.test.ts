import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { Reservations } from '#shared/credit/reservations.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database, NamedStatement, Queryable } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { isLockTimeout } from '#shared/storage/transient-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { lapseReservations } from './lapse-reservations.ts';
import { ledgerCases } from './test-support/ledger-cases.ts';
import { clearLedger, countOf, readRecordOf, reserveAll, spendOf } from './test-support/usage-records.ts';
import { type ReadRecord, writeUsage } from './write-usage.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
});
afterAll(() => fresh?.drop());

async function open(): Promise<Database> {
  const database = await openPostgres({ url: fresh.url, applicationName: 'ledger', log: silentLog });
  await migrate(database);
  return database;
}

/** On a busy machine one of many writers may wait longer than the driver lets it; the log then sends its batch again. A deadlock still fails. */
async function untilNotTimedOut<Result>(statement: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await statement();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
    }
  }
}

ledgerCases('the ledger in PostgreSQL', open);

describe('writers at once', () => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database?.close());
  beforeEach(() => clearLedger(database));

  const KEYS = 40;
  const shuffled = <Item>(items: readonly Item[]) =>
    items
      .map((item) => ({ item, place: Math.random() }))
      .sort((a, b) => a.place - b.place)
      .map(({ item }) => item);

  const lapse = () => lapseReservations({ database, usage: { backlog: async () => ({ records: 0, oldestAtMs: null }) }, clock: systemClock });

  it('bill each call once, whichever has its record, and never wait for each other in a circle', async () => {
    const records = Array.from({ length: 1_500 }, (_, index) =>
      readRecordOf(`gen-${index}`, { keyId: `key-${index % KEYS}`, costNano: index % 3, reserved: index % 2 === 0 }),
    );
    const reserved = records.flatMap(({ record }) => (record.reserved ? [record] : []));
    await reserveAll(database, reserved, 10);
    /** Every record at two of eight writers, in an order of its own, in batches of overlapping keys. */
    const write = async (part: readonly ReadRecord[]) => {
      let inserted = 0;
      const order = shuffled(part);
      while (order.length > 0) {
        const batch = order.splice(0, 60);
        inserted += await untilNotTimedOut(() => writeUsage(database, batch));
      }
      return inserted;
    };
    const parts = [0, 1, 2, 3].flatMap((part) => {
      const own = records.filter((_, index) => index % 4 === part);
      return [own, own];
    });
    let isOver = false;
    const lapsing = (async () => {
      while (!isOver) await untilNotTimedOut(lapse);
    })();
    const inserted = await Promise.all(parts.map(write));
    isOver = true;
    await lapsing;

    expect(inserted.reduce((sum, one) => sum + one, 0)).toBe(1_500);
    expect(await countOf(database, 'usage_ledger')).toBe(1_500);
    expect(await countOf(database, 'reservations')).toBe(0);
    for (let key = 0; key < KEYS; key += 1) {
      const cost = records.reduce((sum, { record }) => sum + (record.keyId === `key-${key}` ? record.costNano : 0), 0);
      expect(await spendOf(database, `key-${key}`)).toMatchObject({ total_nano: cost, day_nano: cost, reserved_nano: 0 });
    }
  });

  it('settle or lapse a reservation, and give its room back once', async () => {
    const records = Array.from({ length: 600 }, (_, index) =>
      readRecordOf(`gen-${index}`, { keyId: `key-${index % KEYS}`, costNano: (Math.floor(index / KEYS) + index) % 2, reserved: true }),
    );
    // Each key has calls with and without costs. All of them are over: each is ended by its record or by time.
    const calls = records.map(({ record }) => record);
    await reserveAll(database, calls, 10, -1_000);
    const lapseAll = async () => {
      for (let round = 0; round < 5; round += 1) await untilNotTimedOut(lapse);
    };
    const order = shuffled(records);
    await Promise.all([
      lapseAll(),
      lapseAll(),
      ...Array.from({ length: 60 }, () => {
        const batch = order.splice(0, 10);
        return untilNotTimedOut(() => writeUsage(database, batch));
      }),
    ]);

    expect(await countOf(database, 'reservations')).toBe(0);
    for (let key = 0; key < KEYS; key += 1)
      expect(await spendOf(database, `key-${key}`)).toMatchObject({ total_nano: key % 2 === 0 ? 7 : 8, reserved_nano: 0 });
  });
});

describe('a writer that is paused', () => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database?.close());
  beforeEach(() => clearLedger(database));

  /** As of a stopped process: each statement is executed, and nothing after it is sent until the writer goes on. */
  function pausing(): { paused: Database; isPaused: Promise<void>; goOn(): void } {
    let onAnswer = () => {};
    let goOn = () => {};
    const isPaused = new Promise<void>((resolve) => {
      onAnswer = resolve;
    });
    const resumed = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const pausingHandle = (handle: Queryable): Queryable => ({
      query: async <Row extends object>(statement: string | NamedStatement, parameters?: readonly unknown[]) => {
        const result = await handle.query<Row>(statement, parameters);
        onAnswer();
        await resumed;
        return result;
      },
    });
    const transaction: Database['transaction'] = (work) => database.transaction((handle) => work(pausingHandle(handle)));
    return { paused: { ...pausingHandle(database), transaction, close: () => database.close() }, isPaused, goOn };
  }

  it('DESIGN 8: keeps no row locked: credit of its keys is reserved meanwhile, and what its calls had reserved is free', async () => {
    await reserveAll(database, [readRecordOf('gen-1').record, readRecordOf('gen-2').record], 100);
    const { paused, isPaused, goOn } = pausing();
    const writing = writeUsage(paused, [readRecordOf('gen-1', { reserved: true }), readRecordOf('gen-2', { reserved: true })]);
    await isPaused;
    const reservations = new Reservations({ database, log: silentLog, metrics: noMetrics, answerMs: 60_000 });
    try {
      const asked = { callId: 'gen-3', keyId: 'key-a', amountNano: 200, limitNano: 240, limitReset: null, deadlineAtMs: Date.now() };
      await expect(reservations.reserve(asked)).resolves.toBeUndefined();
      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 30, reserved_nano: 200 });
    } finally {
      goOn();
      await reservations.stop();
    }
    expect(await writing).toBe(2);
  });
});

it('writers that find keys without a row of spending at the same time make it, and never wait for each other in a circle', async () => {
  const database = await open();
  await clearLedger(database);
  const batches = Array.from({ length: 24 }, (_, batch) =>
    Array.from({ length: 40 }, (__, index) => readRecordOf(`gen-${batch}-${index}`, { keyId: `key-${(batch * 7 + index * 3) % 60}`, costNano: 1 })),
  );
  try {
    const inserted = await Promise.all(batches.map((batch) => untilNotTimedOut(() => writeUsage(database, batch))));
    expect(inserted.reduce((sum, one) => sum + one, 0)).toBe(960);
    const { rows } = await database.query('select sum(total_nano)::int as total, count(*)::int as keys from key_spend');
    expect(rows).toEqual([{ total: 960, keys: 60 }]);
  } finally {
    await database.close();
  }
});

it('the statement of a batch is prepared once per connection', async () => {
  const database = await open();
  await clearLedger(database);
  const planned = await database.transaction(async (handle) => {
    // One execution more, which finds no row of the key.
    for (let batch = 0; batch < 20; batch++) await writeUsage(handle, [readRecordOf(`gen-${batch}`, { reserved: true })]);
    const { rows } = await handle.query(
      `select name, (custom_plans + generic_plans)::int as executions from pg_prepared_statements where name like 'ledger-%' order by name`,
    );
    return rows;
  });
  await database.close();

  // Whether it is planned anew is PostgreSQL's decision, by the statistics of the tables.
  expect(planned).toEqual([{ name: 'ledger-write-records', executions: 21 }]);
});
