import { afterAll, beforeAll, expect, it } from 'vitest';
import { emptyTables } from '../../services/actor-host/test-support/empty-tables.ts';
import type { Database } from '../../shared/storage/database.ts';
import { migrate } from '../../shared/storage/migrate.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { tier } from '../helpers/tier.ts';
import { loadSimulation } from './load-simulation.ts';
import { readAll } from './model-rows.ts';
import { StoreShadow } from './store-shadow.ts';

/** Each takes the database a second. Other seeds than those of the long run, for more coverage. */
const SCHEDULES = Number(process.env['SIMULATION_SHADOWED'] ?? (tier === 'deep' ? 25 : 6));
const FIRST_SEED = 900_000;

let live: Awaited<ReturnType<typeof loadSimulation>>;
/** By seed: what a run without a database did. */
const alone = new Map<number, string>();
let database: Database;
let shadow: StoreShadow;
beforeAll(async () => {
  live = await loadSimulation();
  // The first run of a process sets one timer more than later ones.
  await live({ seed: FIRST_SEED });
  // Before there is a database: what it has left to do would be done within a run, by timers of the simulated processes.
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed += 1) alone.set(seed, (await live({ seed })).traceHash);
  database = await openTestDatabase();
  await migrate(database);
  // The embedded server writes its counters by a timer, which would be one of the simulated process whose step sets it again.
  await database.query('set track_counts = off');
  shadow = await StoreShadow.over(database);
}, 300_000);
afterAll(() => database.close());

it('the model of the database answers every statement of a schedule as PostgreSQL does, and leaves the same rows', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed += 1) {
    await emptyTables(database);
    const outcome = await live({ seed, shadow });
    for (const [table, rows] of Object.entries(outcome.rows)) {
      await shadow.compareTable(
        table,
        rows.map((row) => readAll(row, table)),
      );
    }
    expect(shadow.differences.slice(0, 3).join('\n'), `seed ${seed}`).toBe('');
    expect(outcome.violations, `seed ${seed}`).toEqual([]);
    expect(outcome.traceHash, `seed ${seed} takes the same steps beside a real database`).toBe(alone.get(seed));
  }
  console.log(`${SCHEDULES} schedules, ${shadow.calls} calls and statements of ${shadow.names.size} kinds, answered alike by the model and by PostgreSQL`);
}, 300_000);
