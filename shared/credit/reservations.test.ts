import { describe, expect, it, vi } from 'vitest';
import type { Database } from '../storage/database.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../telemetry/log.ts';
import { noMetrics } from '../telemetry/metrics.ts';
import { Reservations } from './reservations.ts';
import { reservationCases } from './test-support/reservation-cases.ts';

reservationCases('the embedded database', async () => {
  const database = await openTestDatabase();
  return { database, close: () => database.close() };
});

const WAIT = { timeout: 60_000 };
const asked = (callId: string) => ({ callId, keyId: 'k', amountNano: 1, limitNano: 10, limitReset: null, deadlineAtMs: 0 });

describe('reservations without their database', () => {
  const rows = (count: number) => ({ rows: Array.from({ length: count }, () => ({ outcome: 'reserved', fits: true })), rowCount: count });
  type Query = (statement: { name: string }, parameters: unknown[][]) => Promise<unknown>;

  function withQuery(query: Query, answerMs = 20) {
    const statements: string[] = [];
    const recorded: Query = (statement, parameters) => {
      statements.push(statement.name);
      return query(statement, parameters);
    };
    const reservations = new Reservations({ database: { query: recorded } as unknown as Database, log: silentLog, metrics: noMetrics, answerMs });
    return { reservations, statements };
  }

  it('sends the calls of one tick in one statement, and those that come while it runs in the next', async () => {
    const { reservations, statements } = withQuery(async (_, [ids = []]) => rows(ids.length));
    await Promise.all(Array.from({ length: 50 }, (_, index) => reservations.reserve(asked(`c${index}`))));
    await reservations.reserve(asked('later'));
    expect(statements).toEqual(['begin-spend', 'reserve-calls', 'reserve-together']);
  });

  it('decides on each call of a batch where a call of its key was refused before, where not all fit, and where keys, limits or their resets differ', async () => {
    let fits = true;
    let outcome = 'reserved';
    const { reservations, statements } = withQuery(async ({ name }, [ids = []]) =>
      name === 'reserve-together' ? { rows: [{ fits }], rowCount: 1 } : { rows: ids.map(() => ({ outcome })), rowCount: ids.length },
    );
    const ask = async (...keys: [keyId: string, limitNano: number, limitReset?: 'daily'][]) => {
      statements.length = 0;
      const calls = keys.map(([keyId, limitNano, limitReset = null], index) => ({ ...asked(`c${index}`), keyId, limitNano, limitReset }));
      await Promise.allSettled(calls.map((call) => reservations.reserve(call)));
      return statements.filter((name) => name !== 'begin-spend');
    };
    await ask(['k', 10], ['other', 10]);
    expect(await ask(['k', 10], ['k', 10])).toEqual(['reserve-together']);
    expect(await ask(['k', 10], ['other', 10])).toEqual(['reserve-calls']);
    expect(await ask(['k', 10], ['k', 20])).toEqual(['reserve-calls']);
    expect(await ask(['k', 10], ['k', 10, 'daily'])).toEqual(['reserve-calls']);
    expect(await ask(['k', 10, 'daily'], ['k', 10, 'daily'])).toEqual(['reserve-together']);
    [fits, outcome] = [false, 'no-capacity'];
    expect(await ask(['k', 10])).toEqual(['reserve-together', 'reserve-calls']);
    expect(await ask(['k', 10])).toEqual(['reserve-calls']);
    outcome = 'reserved';
    expect(await ask(['k', 10])).toEqual(['reserve-calls']);
    fits = true;
    expect(await ask(['k', 10])).toEqual(['reserve-together']);
  });

  it('decides on each call of a batch whose sum is no safe integer', async () => {
    const { reservations, statements } = withQuery(async (_, [ids = []]) => rows(ids.length));
    await reservations.reserve(asked('first'));
    const amountNano = Number.MAX_SAFE_INTEGER;
    await Promise.all(['c', 'd'].map((callId) => reservations.reserve({ ...asked(callId), amountNano })));
    await reservations.reserve({ ...asked('e'), amountNano });
    expect(statements).toEqual(['begin-spend', 'reserve-calls', 'reserve-calls', 'reserve-together']);
  });

  it.each(['begin-spend', 'reserve-together'])('sends no further statement for a batch that was refused while %s had no answer', async (late) => {
    let answer = (_: unknown) => {};
    const { reservations, statements } = withQuery(({ name }, [ids = []]) =>
      name === late ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(rows(ids.length)),
    );
    if (late === 'reserve-together') await reservations.reserve(asked('first'));
    statements.length = 0;
    await expect(reservations.reserve(asked('c'))).rejects.toMatchObject({ code: 'service.not_ready', cause: { code: 'service.no_answer' } });
    answer({ rows: [{ fits: false }], rowCount: 1 });
    await vi.waitFor(() => expect(statements.at(-1)).toBe('release-calls'), WAIT);
    expect(statements).toEqual([late, 'release-calls']);
    await reservations.stop();
  });

  it('decides on each call where two attempts of one overlap', async () => {
    const { reservations, statements } = withQuery(async ({ name }, [ids = []]) => {
      if (name === 'reserve-together') throw Object.assign(new Error('duplicate key value violates unique constraint'), { code: '23505' });
      return rows(ids.length);
    });
    await reservations.reserve(asked('first'));
    await reservations.reserve(asked('c'));
    expect(statements).toEqual(['begin-spend', 'reserve-calls', 'reserve-together', 'reserve-calls']);
    await reservations.stop();
  });

  describe.each(['reserve-calls', 'reserve-together'])('when %s fails', (failing) => {
    /** From here on the statement that reserves is `failing`. */
    async function begun(query: Query) {
      const opened = withQuery(query);
      if (failing === 'reserve-together') await opened.reservations.reserve(asked('first'));
      else await expect(opened.reservations.reserve({ ...asked('first'), limitNano: 0 })).rejects.toMatchObject({ code: 'router.payment_required' });
      const before = opened.statements.length;
      const sent = () => opened.statements.slice(before).filter((name) => name !== 'begin-spend');
      return { reservations: opened.reservations, sent };
    }

    it('refuses within a bounded time with the time to wait, and releases what it may have reserved once it has ended', async () => {
      let answer = (_: unknown) => {};
      const { reservations, sent } = await begun(({ name }, [ids = []]) =>
        name === failing ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(rows(ids.length)),
      );
      await expect(reservations.reserve(asked('c'))).rejects.toMatchObject({ code: 'service.not_ready', details: { retryAfterMs: expect.any(Number) } });
      expect(sent()).toEqual([failing]);
      answer(rows(1));
      await vi.waitFor(() => expect(sent().at(-1)).toBe('release-calls'), WAIT);
      expect(sent()).toEqual([failing, 'release-calls']);
      await reservations.stop();
    });

    it('releases a call that is asked again, and then given up, once the statement that was not answered has ended', async () => {
      let answer = (_: unknown) => {};
      const { reservations, sent } = await begun(({ name }, [ids = []]) =>
        name === failing ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(rows(ids.length)),
      );
      await expect(reservations.reserve({ ...asked('c'), isAskedAgain: true })).rejects.toMatchObject({ code: 'service.not_ready' });
      reservations.release('c', 'k');
      await new Promise((resolve) => setImmediate(resolve));
      expect(sent()).toEqual([failing]);
      answer(rows(1));
      await vi.waitFor(() => expect(sent().at(-1)).toBe('release-calls'), WAIT);
      await reservations.stop();
    });

    it('asks again while another statement has the row of a key, and refuses once that has taken too long', async () => {
      const lockTimeout = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
      let timeouts = 2;
      const query: Query = async ({ name }, [ids = []]) => {
        if (name === failing && timeouts > 0) {
          timeouts -= 1;
          // The time of the test goes on.
          await new Promise((resolve) => setImmediate(resolve));
          throw lockTimeout;
        }
        return rows(ids.length);
      };
      const { reservations, sent } = await begun(query);
      await reservations.reserve(asked('c'));
      expect(sent()).toEqual([failing, failing, failing]);
      await reservations.stop();

      timeouts = Number.POSITIVE_INFINITY;
      const busy = await begun(query);
      await expect(busy.reservations.reserve(asked('d'))).rejects.toMatchObject({ code: 'service.not_ready' });
      await vi.waitFor(() => expect(busy.sent().at(-1)).toBe('release-calls'), WAIT);
      expect(new Set(busy.sent())).toEqual(new Set([failing, 'release-calls']));
      await busy.reservations.stop();
    });

    it('refuses at once with any other error, and releases', async () => {
      const { reservations, sent } = await begun(async ({ name }, [ids = []]) => {
        if (name === failing) throw Object.assign(new Error('out of memory'), { code: '53200' });
        return rows(ids.length);
      });
      await expect(reservations.reserve(asked('c'))).rejects.toMatchObject({ code: 'service.not_ready', cause: { code: '53200' } });
      await vi.waitFor(() => expect(sent().at(-1)).toBe('release-calls'), WAIT);
      expect(sent()).toEqual([failing, 'release-calls']);
      await reservations.stop();
    });
  });

  it('releases nothing of a call that is asked again: the reservation of the attempt that succeeds is the same', async () => {
    let isAway = true;
    const { reservations, statements } = withQuery(async (_, [ids = []]) => {
      if (isAway) throw new Error('away');
      return rows(ids.length);
    });
    await expect(reservations.reserve({ ...asked('c'), isAskedAgain: true })).rejects.toMatchObject({ code: 'service.not_ready' });
    isAway = false;
    await reservations.reserve({ ...asked('c'), isAskedAgain: true });
    await reservations.reserve(asked('d'));
    await reservations.stop();
    expect(statements).not.toContain('release-calls');
  });

  it('refuses at once what the database refuses, and sends a failed release again', async () => {
    let isAway = true;
    const { reservations, statements } = withQuery(async (_, [ids = []]) => {
      if (isAway) throw new Error('away');
      return rows(ids.length);
    });
    await expect(reservations.reserve(asked('c'))).rejects.toMatchObject({ code: 'service.not_ready' });
    await vi.waitFor(() => expect(statements).toContain('release-calls'), WAIT);
    isAway = false;
    const before = statements.length;
    await vi.waitFor(() => expect(statements.slice(before)).toContain('release-calls'), WAIT);
    await expect(reservations.reserve(asked('d'))).resolves.toBeUndefined();
    await reservations.stop();
  });

  it('asks nothing for a limit of 0, and takes nothing once it is stopped', async () => {
    const { reservations, statements } = withQuery(async () => rows(1));
    await expect(reservations.reserve({ ...asked('c'), limitNano: 0 })).rejects.toMatchObject({ code: 'router.payment_required' });
    await reservations.stop();
    await expect(reservations.reserve(asked('d'))).rejects.toMatchObject({ code: 'service.not_ready' });
    expect(statements).toEqual([]);
  });
});
