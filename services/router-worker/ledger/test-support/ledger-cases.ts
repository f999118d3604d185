import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UsageBacklog } from '#bus/bus.ts';
import { usageRecord } from '#bus/messages/usage.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { lapseReservations } from '../lapse-reservations.ts';
import { writeUsage } from '../write-usage.ts';
import { clearLedger, countOf, readRecordOf, reserve, reserveAll, spendOf } from './usage-records.ts';

const DAY_MS = 24 * 3_600_000;
const EMPTY: UsageBacklog = { records: 0, oldestAtMs: null };

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const weekOf = (ms: number) => dayOf(ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY_MS);
const monthOf = (ms: number) => `${dayOf(ms).slice(0, 7)}-01`;

/** Both drivers write the same ledger. @param open a migrated database */
export function ledgerCases(name: string, open: () => Promise<Database>): void {
  describe(name, () => {
    let database: Database;
    beforeAll(async () => {
      database = await open();
    });
    afterAll(() => database?.close());
    beforeEach(() => clearLedger(database));

    const lapse = (backlog = EMPTY) => lapseReservations({ database, usage: { backlog: async () => backlog }, clock: systemClock });

    it('writes 500 records in one transaction, and their costs to the windows of their keys', async () => {
      const nowMs = Date.now();
      const records = Array.from({ length: 500 }, (_, index) =>
        readRecordOf(`gen-${index}`, { keyId: `key-${index % 7}`, costNano: index, createdAtMs: nowMs, reserved: index % 2 === 0 }),
      );
      const reserved = records.flatMap(({ record }) => (record.reserved ? [record] : []));
      await reserveAll(database, reserved, 1_000);
      expect(await writeUsage(database, records)).toBe(500);

      const costOf = (key: number) => records.reduce((sum, { record }) => sum + (record.keyId === `key-${key}` ? record.costNano : 0), 0);
      for (let key = 0; key < 7; key += 1) {
        const cost = costOf(key);
        expect(await spendOf(database, `key-${key}`)).toEqual({
          total_nano: cost,
          day: dayOf(nowMs),
          day_nano: cost,
          week: weekOf(nowMs),
          week_nano: cost,
          month: monthOf(nowMs),
          month_nano: cost,
          reserved_nano: 0,
        });
      }
      expect(await countOf(database, 'usage_ledger')).toBe(500);
      expect(await countOf(database, 'reservations')).toBe(0);
    });

    it('has the columns of a record, and the record whole', async () => {
      const read = readRecordOf('gen-1', {
        metadata: { odd: 'a\u0000\ud800 é' },
        model: null,
        provider: null,
        createdAtMs: Date.parse('2026-03-01T12:34:56.789Z'),
      });
      await writeUsage(database, [read]);
      const { rows } = await database.query<Record<string, unknown>>('select *, record::text as text from usage_ledger');

      expect(rows).toMatchObject([
        { generation_id: 'gen-1', key_id: 'key-a', model: null, provider: null, prompt_tokens: 10, completion_tokens: 5, reasoning_tokens: 2, cost_nano: 15 },
      ]);
      expect(rows[0]?.created_at).toEqual(new Date('2026-03-01T12:34:56.789Z'));
      expect(rows[0]?.text).toBe(read.body);
      expect(usageRecord.parse(JSON.parse(read.body))).toEqual(read.record);
    });

    it('bills a record once, twice in a batch and in later ones, with another cost too', async () => {
      expect(await writeUsage(database, [readRecordOf('gen-1'), readRecordOf('gen-1')])).toBe(1);
      expect(await writeUsage(database, [readRecordOf('gen-1'), readRecordOf('gen-2', { costNano: 4 })])).toBe(1);
      expect(await writeUsage(database, [readRecordOf('gen-1', { costNano: 1_000 })])).toBe(0);

      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 19, day_nano: 19, week_nano: 19, month_nano: 19 });
    });

    it('settles the reservation of a call, whatever it has cost, and no other one', async () => {
      for (const call of ['gen-1', 'gen-2', 'gen-3']) await reserve(database, call, 'key-a', 100);
      await writeUsage(database, [readRecordOf('gen-1', { reserved: true, costNano: 0 }), readRecordOf('gen-2', { reserved: true, costNano: 150 })]);

      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 150, reserved_nano: 100 });
      expect((await database.query('select call_id from reservations')).rows).toEqual([{ call_id: 'gen-3' }]);
    });

    it('ends a reservation that a repeated call made after its record was written, and bills nothing', async () => {
      await writeUsage(database, [readRecordOf('gen-1', { reserved: true })]);
      await reserve(database, 'gen-1', 'key-a', 100);
      expect(await writeUsage(database, [readRecordOf('gen-1', { reserved: true })])).toBe(0);

      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 15, reserved_nano: 0 });
      expect(await countOf(database, 'reservations')).toBe(0);
    });

    it('makes no row of spending for a call without cost of a key without reservations', async () => {
      await writeUsage(database, [readRecordOf('gen-1', { costNano: 0 })]);

      expect(await spendOf(database, 'key-a')).toBeNull();
      expect(await countOf(database, 'usage_ledger')).toBe(1);
    });

    it('counts a record of yesterday that comes after midnight in the total and in the windows that it is in, not in today', async () => {
      const nowMs = Date.now();
      const yesterdayMs = nowMs - DAY_MS;
      await writeUsage(database, [readRecordOf('gen-1', { costNano: 1, createdAtMs: nowMs })]);
      await writeUsage(database, [readRecordOf('gen-2', { costNano: 10, createdAtMs: yesterdayMs })]);

      expect(await spendOf(database, 'key-a')).toMatchObject({
        total_nano: 11,
        day: dayOf(nowMs),
        day_nano: 1,
        week: weekOf(nowMs),
        week_nano: weekOf(yesterdayMs) === weekOf(nowMs) ? 11 : 1,
        month: monthOf(nowMs),
        month_nano: monthOf(yesterdayMs) === monthOf(nowMs) ? 11 : 1,
      });
    });

    it.each(['together', 'apart'])('rolls the windows with the first record of a later one, of records that come %s', async (how) => {
      const nowMs = Date.now();
      // Another week and another month.
      const beforeMs = nowMs - 40 * DAY_MS;
      const batches = [[readRecordOf('gen-1', { costNano: 10, createdAtMs: beforeMs })], [readRecordOf('gen-2', { costNano: 1, createdAtMs: nowMs })]];
      for (const batch of how === 'together' ? [batches.flat()] : batches) await writeUsage(database, batch);

      expect(await spendOf(database, 'key-a')).toMatchObject({
        total_nano: 11,
        day: dayOf(nowMs),
        day_nano: 1,
        week_nano: 1,
        month: monthOf(nowMs),
        month_nano: 1,
      });
    });

    it('counts a record with a time in the future in the present windows', async () => {
      const nowMs = Date.now();
      await writeUsage(database, [readRecordOf('gen-1', { costNano: 1, createdAtMs: nowMs })]);
      await writeUsage(database, [readRecordOf('gen-2', { costNano: 10, createdAtMs: nowMs + 40 * DAY_MS })]);
      await writeUsage(database, [readRecordOf('gen-3', { costNano: 100, createdAtMs: nowMs })]);

      expect(await spendOf(database, 'key-a')).toMatchObject({
        total_nano: 111,
        day: dayOf(nowMs),
        day_nano: 111,
        week: weekOf(nowMs),
        week_nano: 111,
        month_nano: 111,
      });
    });

    it('counts what was spent while the clock was fast in the present windows, once it is right again', async () => {
      const nowMs = Date.now();
      await database.query(
        `insert into key_spend (key_id, total_nano, day, day_nano, week, week_nano, month, month_nano) values ('key-a', 100, $1, 100, $2, 100, $3, 100)`,
        [dayOf(nowMs + 40 * DAY_MS), weekOf(nowMs + 40 * DAY_MS), monthOf(nowMs + 40 * DAY_MS)],
      );
      await writeUsage(database, [readRecordOf('gen-1', { costNano: 1, createdAtMs: nowMs })]);

      expect(await spendOf(database, 'key-a')).toMatchObject({
        total_nano: 101,
        day: dayOf(nowMs),
        day_nano: 101,
        week: weekOf(nowMs),
        week_nano: 101,
        month_nano: 101,
      });
    });

    it('writes nothing of a batch of which a part fails', async () => {
      await reserve(database, 'gen-1', 'key-a', 100);
      const batch = [readRecordOf('gen-1', { reserved: true }), readRecordOf('gen-2', { keyId: 'key-b', createdAtMs: 1e300 })];
      await expect(writeUsage(database, batch)).rejects.toMatchObject({ code: expect.stringMatching(/^22/) });

      expect(await countOf(database, 'usage_ledger')).toBe(0);
      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 0, reserved_nano: 100 });
    });

    it('DESIGN 8: the reservation of a dead call lapses when its time is over, and a record that comes later is billed all the same', async () => {
      await reserve(database, 'gen-dead', 'key-a', 100, -1_000);
      await reserve(database, 'gen-alive', 'key-a', 10, 60_000);
      await reserve(database, 'gen-other', 'key-b', 7, -1_000);

      expect((await lapse()).sort((a, b) => a.keyId.localeCompare(b.keyId))).toEqual([
        { keyId: 'key-a', amountNano: 100, reservations: 1 },
        { keyId: 'key-b', amountNano: 7, reservations: 1 },
      ]);
      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 0, reserved_nano: 10 });
      expect(await lapse()).toEqual([]);

      await writeUsage(database, [readRecordOf('gen-dead', { reserved: true, costNano: 60 })]);
      expect(await spendOf(database, 'key-a')).toMatchObject({ total_nano: 60, day_nano: 60, reserved_nano: 10 });
    });

    it('DESIGN 8: no reservation lapses while a record that was stored before its end is not in the ledger', async () => {
      await reserve(database, 'gen-1', 'key-a', 100, -10_000);
      await reserve(database, 'gen-2', 'key-a', 10, -30_000);

      expect(await lapse({ records: 1, oldestAtMs: Date.now() - 20_000 })).toEqual([{ keyId: 'key-a', amountNano: 10, reservations: 1 }]);
      expect(await spendOf(database, 'key-a')).toMatchObject({ reserved_nano: 100 });
      expect(await lapse()).toEqual([{ keyId: 'key-a', amountNano: 100, reservations: 1 }]);
    });
  });
}
