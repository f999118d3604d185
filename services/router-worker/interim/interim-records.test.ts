import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type UsageRecord, usageRecord } from '#bus/messages/usage.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { OverdueInterims } from '../ledger/bill-interims.ts';
import { startLedger } from '../ledger/ledger.ts';
import { clearLedger, countOf, readRecordOf, reserve, spendOf } from '../ledger/test-support/usage-records.ts';
import { writeUsage } from '../ledger/write-usage.ts';
import { InterimRecords } from './interim-records.ts';

const WAIT = { timeout: 60_000 };
let database: Database;
let interims: InterimRecords;
let ledger: { stop(): Promise<void> } | null = null;
let oldestAtMs: number | null;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await clearLedger(database);
  await database.query('delete from interim_records');
  oldestAtMs = null;
  interims = new InterimRecords({ database, log: silentLog, lookEveryMs: 5 });
});
afterEach(async () => {
  interims.stop();
  await ledger?.stop();
  ledger = null;
});

const idle = { consume: () => ({ stop: async () => {} }), append: async () => {}, backlog: async () => ({ records: 0, oldestAtMs }) };

function startSweep() {
  const metrics = openMetrics();
  ledger = startLedger({ usage: idle, database, clock: systemClock, log: silentLog, metrics, lapseEveryMs: 20 });
  return metrics;
}

const recordsOf = async () =>
  (await database.query<{ record: unknown }>('select record from interim_records')).rows.map(({ record }) => usageRecord.parse(record));
const rowsOf = async () => (await database.query<{ generation_id: string; cost_nano: number }>('select generation_id, cost_nano from usage_ledger')).rows;
const overdue = () => database.query(`update interim_records set until = now() - interval '1 second'`);

/** Followed until its record is written. */
async function written(id: string, changes: Partial<UsageRecord> = {}): Promise<void> {
  const end = interims.follow(id, () => readRecordOf(id, changes).record);
  await vi.waitFor(async () => expect(await interims.find(id)).not.toBeNull(), WAIT);
  end();
}

describe('the interim record of a running call', () => {
  it('is written once it has content, and again with what was used since', async () => {
    let completion = 0;
    const end = interims.follow('gen-1', () => {
      const { record } = readRecordOf('gen-1', { tokens: { prompt: 1, completion, reasoning: 0, cached: 0, cacheWrite: 0 } });
      return completion === 0 ? null : record;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await recordsOf()).toEqual([]);
    completion = 3;
    await vi.waitFor(async () => expect(await recordsOf()).toMatchObject([{ generationId: 'gen-1', tokens: { completion: 3 } }]), WAIT);
    completion = 9;
    await vi.waitFor(async () => expect(await recordsOf()).toMatchObject([{ tokens: { completion: 9 } }]), WAIT);
    end();
  });

  it.each<[string, () => UsageRecord]>([
    [
      'fails',
      () => {
        throw new TypeError('no such field');
      },
    ],
    ['has a cost that is no number', () => readRecordOf('gen-bad', { costNano: Number.NaN }).record],
    [
      'has a token count that is no integer',
      () => readRecordOf('gen-bad', { tokens: { prompt: 0.5, completion: 1, reasoning: 0, cached: 0, cacheWrite: 0 } }).record,
    ],
  ])('is written though that of another call %s, which is logged once and tried again', async (_, faulty) => {
    const lines: unknown[] = [];
    const log = { ...silentLog, error: (fields: object, message: string) => void lines.push({ ...fields, message }) };
    const under = new InterimRecords({ database, log, lookEveryMs: 5 });
    onTestFinished(() => under.stop());
    let failures = 0;
    let isRepaired = false;
    under.follow('gen-bad', () => {
      if (isRepaired) return readRecordOf('gen-bad').record;
      failures += 1;
      return faulty();
    });
    under.follow('gen-1', () => readRecordOf('gen-1').record);
    await vi.waitFor(async () => expect(await recordsOf()).toMatchObject([{ generationId: 'gen-1' }]), WAIT);
    await vi.waitFor(() => expect(failures).toBeGreaterThan(3), WAIT);
    const message = 'what a running call has used could not be recorded: if its worker dies, the call may not be billed';
    expect(lines).toEqual([{ err: expect.any(Error), call_id: 'gen-bad', message }]);
    isRepaired = true;
    await vi.waitFor(async () => expect(await under.find('gen-bad')).not.toBeNull(), WAIT);
  });

  it('is made in more than one turn of the event loop when many are due at once, and not written once its call has ended', async () => {
    let turns = 0;
    let turn = setImmediate(function next() {
      turns += 1;
      turn = setImmediate(next);
    });
    onTestFinished(() => clearImmediate(turn));
    const madeIn: number[][] = [];
    const ids = Array.from({ length: 40 }, (_, index) => `gen-${index + 10}`);
    const ends = ids.map((id, index) =>
      interims.follow(id, () => {
        if (index === 0) madeIn.push([]);
        madeIn.at(-1)?.push(turns);
        if (index === 39 && madeIn.length > 1) ends[0]?.();
        return readRecordOf(id).record;
      }),
    );
    await vi.waitFor(async () => expect(await recordsOf()).toHaveLength(39), WAIT);
    expect(await interims.find('gen-10')).toBeNull();
    const [first] = madeIn;
    expect(first).toHaveLength(40);
    expect(new Set(first).size).toBeGreaterThan(1);
    for (const end of ends) end();
  });

  it('is written with the next ones when the database was away', async () => {
    let isAway = true;
    const query: Database['query'] = (statement, parameters) => {
      if (isAway) return Promise.reject(new SwitchyardError('service.unreachable', 'away'));
      return database.query(statement, parameters);
    };
    const under = new InterimRecords({ database: { query }, log: silentLog, lookEveryMs: 5 });
    under.follow('gen-1', () => readRecordOf('gen-1').record);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await under.find('gen-1')).toBeNull();
    isAway = false;
    await vi.waitFor(async () => expect(await recordsOf()).toHaveLength(1), WAIT);
    under.stop();
  });

  it('is an error in the log when the database refuses it, once until it is written again', async () => {
    let [isAway, isRefused, refusals] = [true, true, 0];
    const query: Database['query'] = (statement, parameters) => {
      if (isAway) return Promise.reject(new SwitchyardError('service.unreachable', 'away'));
      if (!isRefused) return database.query(statement, parameters);
      refusals += 1;
      return Promise.reject(Object.assign(new Error('permission denied for table interim_records'), { code: '42501' }));
    };
    const lines: [string, unknown][] = [];
    const at = (level: string) => (fields: { err?: unknown }) => void lines.push([level, fields.err instanceof Error ? fields.err.message : null]);
    const under = new InterimRecords({ database: { query }, log: { ...silentLog, info: at('info'), error: at('error') }, lookEveryMs: 5 });
    onTestFinished(() => under.stop());
    under.follow('gen-1', () => readRecordOf('gen-1').record);
    expect(await under.find('gen-1')).toBeNull();
    expect(lines).toEqual([]);
    isAway = false;
    await vi.waitFor(() => expect(refusals).toBeGreaterThan(2), WAIT);
    isRefused = false;
    await vi.waitFor(async () => expect(await recordsOf()).toHaveLength(1), WAIT);

    await vi.waitFor(
      () =>
        expect(lines).toEqual([
          ['error', 'permission denied for table interim_records'],
          ['info', null],
        ]),
      WAIT,
    );
  });

  it('is an error in the log once, also when only reads of it are refused', async () => {
    let isRefused = true;
    const query: Database['query'] = (statement, parameters) => {
      const isRead = JSON.stringify(statement).includes('select record');
      if (isRead && isRefused) return Promise.reject(Object.assign(new Error('permission denied for table interim_records'), { code: '42501' }));
      return database.query(statement, parameters);
    };
    const lines: string[] = [];
    const log = {
      ...silentLog,
      info: (_: object, message: string) => void lines.push(message),
      error: (_: object, message: string) => void lines.push(message),
    };
    const under = new InterimRecords({ database: { query }, log, lookEveryMs: 5 });
    onTestFinished(() => under.stop());
    under.follow('gen-1', () => readRecordOf('gen-1').record);
    for (const id of ['gen-1', 'gen-2']) {
      expect(await under.find(id)).toBeNull();
      await database.query('delete from interim_records');
      await vi.waitFor(async () => expect(await recordsOf()).toHaveLength(1), WAIT);
    }
    expect(lines).toEqual([expect.stringContaining('could not be read')]);
    isRefused = false;
    expect(await under.find('gen-1')).not.toBeNull();
    expect(lines.slice(1)).toEqual(['interim records are read again']);
  });

  it('DESIGN 8: bills a call that no worker has ended, once, and settles its reservation', async () => {
    await reserve(database, 'gen-1', 'key-a', 100);
    await written('gen-1', { reserved: true, costNano: 40, finishReason: 'error' });
    await overdue();
    const metrics = startSweep();
    await vi.waitFor(async () => expect(await recordsOf()).toEqual([]), WAIT);
    expect(await rowsOf()).toEqual([{ generation_id: 'gen-1', cost_nano: 40 }]);
    expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 40, reserved_nano: 0 });
    expect(await countOf(database, 'reservations')).toBe(0);
    expect(await metrics.text()).toContain('switchyard_interim_records_billed_total 1');
  });

  it('bills nothing of a call whose own record is in the ledger, or may be in the log', async () => {
    await written('gen-waiting', { costNano: 40 });
    await overdue();
    oldestAtMs = Date.now() - 60_000;
    const metrics = startSweep();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await rowsOf()).toEqual([]);
    const { record, body } = readRecordOf('gen-waiting', { costNano: 70 });
    await writeUsage(database, [{ record, body }]);
    oldestAtMs = null;
    await vi.waitFor(async () => expect(await recordsOf()).toEqual([]), WAIT);
    expect(await rowsOf()).toEqual([{ generation_id: 'gen-waiting', cost_nano: 70 }]);
    expect(await metrics.text()).not.toContain('switchyard_interim_records_billed_total 1');
  });

  it('is left while its worker writes it again, also when it was overdue behind an outage', async () => {
    await written('gen-1');
    await overdue();
    const found = new OverdueInterims({ database, usage: idle, clock: systemClock });
    expect(await found.next()).toEqual([]);
    await written('gen-1');
    await database.query(`update interim_records set until = now() + interval '1 minute'`);
    expect(await found.next()).toEqual([]);
    await overdue();
    expect(await found.next()).toEqual([]);
    expect(await found.next()).toMatchObject([{ messageId: 'gen-1' }]);
  });
});
