import type { Database } from '../../shared/storage/database.ts';

/** `now()` and `clock_timestamp()` of a database are found in a schema that goes before the system's. @returns sets them */
export async function simulateClock(database: Database): Promise<(nowMs: number) => Promise<void>> {
  await database.query('create schema sim');
  for (const name of ['now', 'clock_timestamp']) {
    const clock = `select timestamptz 'epoch' + current_setting('sim.now')::bigint * interval '1 ms'`;
    await database.query(`create function sim.${name}() returns timestamptz language sql stable as '${clock.replaceAll("'", "''")}'`);
  }
  await database.query('set search_path = sim, public, pg_catalog');
  let setMs = -1;
  return async (nowMs) => {
    if (nowMs !== setMs) await database.query(`select set_config('sim.now', $1, false)`, [String(nowMs)]);
    setMs = nowMs;
  };
}
