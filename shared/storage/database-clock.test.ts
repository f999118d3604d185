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
  const world = { elapsed: 1_000, database: NOON_MS, own: NOON_MS + skewMs, toMs: 0, backMs: 0, away: false };
  const pass = (ms: number) => {
    world.elapsed += ms;
    world.database += ms;
    world.own += ms;
  };
  const lines: { level: string; skew: unknown }[] = [];
  const quiet = () => {};
  const at = (level: string) => (facts: Record<string, unknown>) => void lines.push({ level, skew: facts.skew_ms });
  const log: Log = { trace: quiet, debug: quiet, info: at('info'), warn: at('warn'), error: at('error') };
  const database: Queryable = {
    async query<Row extends object>(): Promise<QueryResult<Row>> {
      if (world.away) throw new Error('the database is away');
      pass(world.toMs);
      const rows = [{ now_ms: world.database }] as unknown as Row[];
      pass(world.backMs);
      return { rows, rowCount: 1 };
    },
  };
  const metrics = openMetrics();
  clock = await openDatabaseClock({ database, log, metrics, clock: { nowMs: () => world.own }, elapsedMs: () => world.elapsed });
  const shown = async () => Number(/^switchyard_clock_skew_seconds (\S+)$/m.exec(await metrics.text())?.[1]);
  return { world, pass, lines, clock, shown };
}

it('is the time of the database, whatever the clock of the process says and is set to', async () => {
  const { world, pass, clock } = await begin({ skewMs: -HOUR_MS });
  expect(clock.nowMs()).toBe(world.database);

  pass(7_000);
  world.own += 5 * HOUR_MS;
  expect(clock.nowMs()).toBe(world.database);
});

it('is off by half the time that a reading took at most, and does not jump for a reading that says less', async () => {
  const { world, pass, clock } = await begin();
  world.toMs = 400;
  await clock.read();
  expect(clock.nowMs()).toBe(world.database);

  world.database += 1_000;
  world.toMs = 0;
  world.backMs = 600;
  await clock.read();
  expect(Math.abs(clock.nowMs() - world.database)).toBeLessThanOrEqual(300);

  const before = clock.nowMs();
  world.backMs = 60_000;
  world.database += HOUR_MS;
  await clock.read();
  expect(clock.nowMs()).toBe(before + 60_000);
  pass(1);
  expect(clock.nowMs()).toBe(before + 60_001);
});

it('follows a database whose clock was set, and goes on without one that is away', async () => {
  const { world, pass, clock } = await begin();
  world.database += HOUR_MS;
  await clock.read();
  expect(clock.nowMs()).toBe(world.database);

  world.away = true;
  await expect(clock.read()).rejects.toThrow('away');
  pass(30_000);
  expect(clock.nowMs()).toBe(world.database);
});

it('warns of a process whose clock is wrong by more than 5 s, once until that changes, and tells by how much', async () => {
  const { world, clock, lines, shown } = await begin({ skewMs: 6_000 });
  await clock.read();
  expect(lines).toEqual([{ level: 'warn', skew: 6_000 }]);
  expect(await shown()).toBe(6);

  world.own += 4_000;
  await clock.read();
  expect(lines).toHaveLength(1);

  world.own -= 20_000;
  await clock.read();
  world.own += 10_000;
  await clock.read();
  await clock.read();
  expect(lines.slice(1)).toEqual([
    { level: 'warn', skew: -10_000 },
    { level: 'info', skew: 0 },
  ]);
  expect(await shown()).toBe(0);
});

it('says nothing of a clock that is wrong by 5 s or less', async () => {
  const { clock, lines, shown } = await begin({ skewMs: -5_000 });
  await clock.read();

  expect(lines).toEqual([]);
  expect(await shown()).toBe(-5);
});
