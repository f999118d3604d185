import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../storage/database.ts';
import { silentLog } from '../../telemetry/log.ts';
import { noMetrics } from '../../telemetry/metrics.ts';
import { type AskedReservation, LAPSE_AFTER_MS, Reservations } from '../reservations.ts';

type Outcome = 'reserved' | 'router.payment_required' | 'service.not_ready';

/** @param open returns a migrated database of its own, once per process that the cases need */
export function reservationCases(name: string, open: () => Promise<{ database: Database; close(): Promise<void> }>): void {
  describe(`reservations on ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    let database: Database;
    const stops: (() => Promise<void>)[] = [];
    beforeAll(async () => {
      opened = await open();
      database = opened.database;
    });
    afterEach(async () => {
      await Promise.all(stops.splice(0).map((stop) => stop()));
      await database.query('delete from reservations');
      await database.query('delete from key_spend');
      await database.query('delete from usage_ledger');
    });
    afterAll(() => opened?.close());

    const process = () => {
      const reservations = new Reservations({ database, log: silentLog, metrics: noMetrics });
      stops.push(() => reservations.stop());
      return reservations;
    };
    const asked = (callId: string, fields: Partial<AskedReservation> = {}): AskedReservation => ({
      ...{ callId, keyId: 'k', amountNano: 100, limitNano: 1_000, limitReset: null, deadlineAtMs: 1_800_000_000_000 },
      ...fields,
    });
    const outcomeOf = (reserving: Promise<void>): Promise<Outcome> =>
      reserving.then(
        () => 'reserved' as const,
        (error) => error.code,
      );
    const reservedOf = async (keyId = 'k') => {
      const { rows } = await database.query<{ sum: number; rows: number; amount: number }>(
        `select s.reserved_nano as sum, count(r.call_id)::int as rows, coalesce(sum(r.amount_nano), 0)::bigint as amount
         from key_spend s left join reservations r using (key_id) where s.key_id = $1 group by s.reserved_nano`,
        [keyId],
      );
      return rows[0];
    };
    const nowMsOf = async () => Number((await database.query<{ ms: number }>('select (extract(epoch from now()) * 1000)::bigint as ms')).rows[0]?.ms);
    const spent = (fields: string) => database.query(`update key_spend set ${fields} where key_id = 'k'`);

    it('DESIGN 8: no more than the limit is reserved, however many processes reserve at once', async () => {
      const [one, other] = [process(), process()];
      const outcomes = await Promise.all(Array.from({ length: 1_000 }, (_, index) => outcomeOf((index % 2 ? one : other).reserve(asked(`c${index}`)))));

      expect(outcomes.filter((outcome) => outcome === 'reserved')).toHaveLength(10);
      expect(outcomes.filter((outcome) => outcome === 'router.payment_required')).toHaveLength(990);
      expect(await reservedOf()).toEqual({ sum: 1_000, rows: 10, amount: 1_000 });
    });

    it('DESIGN 8: no more than the limit is reserved by batches that fit, or do not, as a whole', async () => {
      const processes = [process(), process(), process()];
      for (const [index, one] of processes.entries()) await one.reserve(asked(`first ${index}`));
      const outcomes = await Promise.all(
        processes.map(async (one, index) => {
          const of: Outcome[] = [];
          for (let batch = 0; batch < 4; batch += 1) {
            const ids = Array.from({ length: 2 }, (_, call) => `c${index}-${batch}-${call}`);
            of.push(...(await Promise.all(ids.map((id) => outcomeOf(one.reserve(asked(id)))))));
          }
          return of;
        }),
      );
      expect(outcomes.flat().filter((outcome) => outcome === 'reserved')).toHaveLength(7);
      expect(await reservedOf()).toEqual({ sum: 1_000, rows: 10, amount: 1_000 });
    });

    it('reserves once for a call that comes twice in a tick, or at two processes, while its key has capacity', async () => {
      const [one, other] = [process(), process()];
      await Promise.all([one.reserve(asked('first')), other.reserve(asked('second'))]);
      const same = [one, one, other].map((reservations) => outcomeOf(reservations.reserve(asked('same'))));
      expect(await Promise.all(same)).toEqual(['reserved', 'reserved', 'reserved']);
      expect(await outcomeOf(one.reserve(asked('same')))).toBe('reserved');
      expect(await reservedOf()).toEqual({ sum: 300, rows: 3, amount: 300 });
    });

    it('never waits in a circle when processes ask for the same keys in different orders', async () => {
      const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
      const rounds = Array.from({ length: 10 }, async (_, round) => {
        const reservations = process();
        const ordered = round % 2 === 0 ? keys : keys.toReversed();
        return Promise.all(ordered.map((keyId) => outcomeOf(reservations.reserve(asked(`${keyId}-${round}`, { keyId })))));
      });
      expect(new Set((await Promise.all(rounds)).flat())).toEqual(new Set(['reserved']));
    });

    it('leaves capacity for what is cheap when a dear call of the same tick does not fit', async () => {
      const reservations = process();
      const amounts = [600, 2_000, 300];
      const outcomes = await Promise.all(amounts.map((amountNano, index) => outcomeOf(reservations.reserve(asked(`c${index}`, { amountNano })))));
      expect(outcomes).toEqual(['reserved', 'router.payment_required', 'reserved']);
    });

    it('reserves once per call, also when a call comes twice in a tick, or when the key has no more capacity', async () => {
      const [one, other] = [process(), process()];
      const full = { amountNano: 1_000 };
      expect(await Promise.all([one, one, other].map((reservations) => outcomeOf(reservations.reserve(asked('same', full)))))).toContain('reserved');
      expect(await outcomeOf(other.reserve(asked('same', full)))).toBe('reserved');
      expect(await reservedOf()).toEqual({ sum: 1_000, rows: 1, amount: 1_000 });
    });

    it('reserves nothing for a call whose usage is in the ledger', async () => {
      const reservations = process();
      await reservations.reserve(asked('first'));
      await database.query(
        `insert into usage_ledger (generation_id, key_id, created_at, prompt_tokens, completion_tokens, cost_nano, record) values ('settled', 'k', now(), 1, 1, 1, '{}')`,
      );
      expect(await outcomeOf(reservations.reserve(asked('settled')))).toBe('reserved');
      expect(await reservedOf()).toMatchObject({ rows: 1 });
    });

    it('reserves for calls whose ids are before and behind those in the ledger', async () => {
      const reservations = process();
      await database.query(
        `insert into usage_ledger (generation_id, key_id, created_at, prompt_tokens, completion_tokens, cost_nano, record) values ('settled', 'k', now(), 1, 1, 1, '{}')`,
      );
      for (const callId of ['first', 'settle', 'settled-', 'then']) await reservations.reserve(asked(callId));
      expect(await reservedOf()).toMatchObject({ rows: 4 });
      // Calls of several keys are decided on by the statement for each call.
      const others = ['set', 'settled-too'].map((callId) => asked(callId, { keyId: 'other' }));
      await Promise.all([asked('second'), ...others, asked('settled')].map((call) => reservations.reserve(call)));
      expect([await reservedOf(), await reservedOf('other')]).toMatchObject([{ rows: 5 }, { rows: 2 }]);
    });

    it.each([-300_000, 0, 300_000])('DESIGN 8: ends a reservation a minute behind the deadline of its call, by a clock that is %i ms off', async (offMs) => {
      const clock = { nowMs: () => Date.now() + offMs };
      const reservations = new Reservations({ database, log: silentLog, metrics: noMetrics, clock });
      stops.push(() => reservations.stop());
      const before = await nowMsOf();
      await reservations.reserve(asked('c', { deadlineAtMs: clock.nowMs() + 90_000 }));
      const { rows } = await database.query<{ ms: number }>(`select (extract(epoch from until) * 1000)::bigint as ms from reservations`);
      const lapsesAfterMs = 90_000 + LAPSE_AFTER_MS;
      expect(Number(rows[0]?.ms)).toBeGreaterThanOrEqual(before + lapsesAfterMs - (await nowMsOf()) + before - 1);
      expect(Number(rows[0]?.ms)).toBeLessThanOrEqual((await nowMsOf()) + lapsesAfterMs + 1);
    });

    const today = `(now() at time zone 'utc')::date`;
    const week = `date_trunc('week', now() at time zone 'utc')::date`;
    const month = `date_trunc('month', now() at time zone 'utc')::date`;
    it.each<[AskedReservation['limitReset'], string, Outcome]>([
      [null, 'total_nano = 950', 'router.payment_required'],
      [null, 'total_nano = 900', 'reserved'],
      ['daily', 'total_nano = 9000, day_nano = 900', 'reserved'],
      ['daily', 'day_nano = 950', 'router.payment_required'],
      ['daily', `day_nano = 950, day = ${today} - 1`, 'reserved'],
      ['daily', `day_nano = 950, day = ${today} + 1`, 'router.payment_required'],
      ['weekly', 'week_nano = 950', 'router.payment_required'],
      ['weekly', `week_nano = 950, week = ${week} - 7`, 'reserved'],
      ['monthly', 'month_nano = 950', 'router.payment_required'],
      ['monthly', `month_nano = 950, month = ${month} - 1`, 'reserved'],
    ])('with the period %s and %s is %s', async (limitReset, fields, outcome) => {
      const reservations = process();
      await reservations.reserve(asked('first', { amountNano: 0 }));
      await spent(fields);
      expect(await outcomeOf(reservations.reserve(asked('second', { limitReset })))).toBe(outcome);
    });

    it('decides on each of two calls of one tick by its own period, when the reset of its key was changed between them', async () => {
      const reservations = process();
      await reservations.reserve(asked('first', { amountNano: 0 }));
      await spent('total_nano = 950');
      const calls = [asked('changed', { limitReset: 'daily' }), asked('unchanged')];
      expect(await Promise.all(calls.map((call) => outcomeOf(reservations.reserve(call))))).toEqual(['reserved', 'router.payment_required']);
    });

    it('refuses a call that costs nothing once the limit is reached, and every call of a limit of 0', async () => {
      const reservations = process();
      await reservations.reserve(asked('first', { amountNano: 0 }));
      await spent('total_nano = 1000');
      expect(await outcomeOf(reservations.reserve(asked('free', { amountNano: 0 })))).toBe('router.payment_required');
      expect(await outcomeOf(reservations.reserve(asked('none', { amountNano: 0, limitNano: 0 })))).toBe('router.payment_required');
    });

    it('gives released credit back at once, and once', async () => {
      const reservations = process();
      await reservations.reserve(asked('first', { amountNano: 1_000 }));
      for (const _ of ['once', 'again']) {
        reservations.release('first', 'k');
        await expect.poll(() => reservedOf()).toEqual({ sum: 0, rows: 0, amount: 0 });
      }
      expect(await outcomeOf(reservations.reserve(asked('second', { amountNano: 1_000 })))).toBe('reserved');
    });

    it('waits a moment for credit that only reservations occupy, since the ledger settles those of ended calls', async () => {
      const one = process();
      await one.reserve(asked('ended', { amountNano: 900 }));
      // A tick of its own, in which the statement that finds no capacity runs before the release.
      await new Promise((resolve) => setImmediate(resolve));
      const next = outcomeOf(one.reserve(asked('next', { amountNano: 900 })));
      one.release('ended', 'k');

      expect(await next).toBe('reserved');
      expect(await reservedOf()).toEqual({ sum: 900, rows: 1, amount: 900 });
    });

    it('begins anew with a key whose row was deleted', async () => {
      const reservations = process();
      await reservations.reserve(asked('first'));
      await database.query('delete from reservations');
      await database.query('delete from key_spend');
      expect(await outcomeOf(reservations.reserve(asked('second')))).toBe('reserved');
    });
  });
}
