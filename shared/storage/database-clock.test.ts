import { afterEach, expect, it } from 'vitest';
import type { Log } from '../telemetry/log.ts';
import { openMetrics } from '../telemetry/open-metrics.ts';
import type { Queryable, QueryResult } from './database.ts';
import { type DatabaseClock, openDatabaseClock } from './database-clock.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const HOUR_MS = 3_600_000;
let clock: DatabaseClock | null = null;
afterEach(() => clock?.stop());

/** Fake clocks of a process and a database, which replies after `latency` in each direction. */
async function begin({ skewMs = 0 } = {}) {
  const clocks = { elapsed: 1_000, database: NOON_MS, own: NOON_MS + skewMs, toMs: 0, backMs: 0, away: false };
  const pass = (ms: number) => {
    clocks.elapsed += ms;
    clocks.database += ms;
    clocks.own += ms;
  };
  const lines: { level: string; skew: unknown }[] = [];
  const quiet = () => {};
  const at = (level: string) => (facts: Record<string, unknown>) => void lines.push({ level, skew: facts.skew_ms });
  const log: Log = { trace: quiet, debug: quiet, info: at('info'), warn: at('warn'), error: at('error') };
  const database: Queryable = {
    async query<Row extends object>(): Promise<QueryResult<Row>> {
      if (clocks.away) throw new Error('the database is away');
      pass(clocks.toMs);
      const rows = [{ now_ms: clocks.database }] as unknown as Row[];
      pass(clocks.backMs);
      return { rows, rowCount: 1 };
    },
  };
  const metrics = openMetrics();
  clock = await openDatabaseClock({ database, log, metrics, clock: { nowMs: () => clocks.own }, elapsedMs: () => clocks.elapsed });
  const shown = async () => Number(/^switchyard_clock_skew_seconds (\S+)$/m.exec(await metrics.text())?.[1]);
  return { clocks, pass, lines, clock, shown };
}

it('is the time of the database, whatever the clock of the process', async () => {
  const { clocks, pass, clock } = await begin({ skewMs: -HOUR_MS });
  expect(clock.nowMs()).toBe(clocks.database);

  pass(7_000);
  clocks.own += 5 * HOUR_MS;
  expect(clock.nowMs()).toBe(clocks.database);
});

it('is off by at most half the duration of a reading, and does not jump at a less precise reading', async () => {
  const { clocks, pass, clock } = await begin();
  clocks.toMs = 400;
  await clock.read();
  expect(clock.nowMs()).toBe(clocks.database);

  clocks.database += 1_000;
  clocks.toMs = 0;
  clocks.backMs = 600;
  await clock.read();
  expect(Math.abs(clock.nowMs() - clocks.database)).toBeLessThanOrEqual(300);

  const before = clock.nowMs();
  clocks.backMs = 60_000;
  clocks.database += HOUR_MS;
  await clock.read();
  expect(clock.nowMs()).toBe(before + 60_000);
  pass(1);
  expect(clock.nowMs()).toBe(before + 60_001);
});

it('follows a database whose clock was set, and goes on without one that is away', async () => {
  const { clocks, pass, clock } = await begin();
  clocks.database += HOUR_MS;
  await clock.read();
  expect(clock.nowMs()).toBe(clocks.database);

  clocks.away = true;
  await expect(clock.read()).rejects.toThrow('away');
  pass(30_000);
  expect(clock.nowMs()).toBe(clocks.database);
});

it('warns of a process whose clock is wrong by more than 5 s, once until that changes, with the difference', async () => {
  const { clocks, clock, lines, shown } = await begin({ skewMs: 6_000 });
  await clock.read();
  expect(lines).toEqual([{ level: 'warn', skew: 6_000 }]);
  expect(await shown()).toBe(6);

  clocks.own += 4_000;
  await clock.read();
  expect(lines).toHaveLength(1);

  clocks.own -= 20_000;
  await clock.read();
  clocks.own += 10_000;
  await clock.read();
  await clock.read();
  expect(lines.slice(1)).toEqual([
    { level: 'warn', skew: -10_000 },
    { level: 'info', skew: 0 },
  ]);
  expect(await shown()).toBe(0);
});

it('does not warn of a clock that is wrong by 5 s or less', async () => {
  const { clock, lines, shown } = await begin({ skewMs: -5_000 });
  await clock.read();

  expect(lines).toEqual([]);
  expect(await shown()).toBe(-5);
});
