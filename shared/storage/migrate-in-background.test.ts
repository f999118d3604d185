import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Log } from '../telemetry/log.ts';
import type { Database } from './database.ts';
import { migrateInBackground } from './migrate-in-background.ts';
import { openPglite } from './pglite/open-pglite.ts';

let real: Database;
beforeAll(async () => {
  real = await openPglite({ folder: null });
});
afterAll(() => real?.close());
beforeEach(() => real.query('drop schema public cascade; create schema public'));

/** Its first transactions fail. */
function failing(failures: number, error: Error): { database: Database; tries: () => number } {
  let tries = 0;
  const transaction: Database['transaction'] = (work, options) => {
    tries += 1;
    return tries <= failures ? Promise.reject(error) : real.transaction(work, options);
  };
  return { database: { query: real.query.bind(real), transaction, close: async () => {} }, tries: () => tries };
}

function recording(): { log: Log; errors: string[]; infos: string[] } {
  const [errors, infos]: [string[], string[]] = [[], []];
  const none = () => {};
  const log = {
    trace: none,
    debug: none,
    warn: none,
    info: (_: object, message: string) => void infos.push(message),
    error: (_: object, message: string) => void errors.push(message),
  };
  return { log, errors, infos };
}

const unreachable = new SwitchyardError('service.unreachable', 'no connection');
const refused = new SwitchyardError('storage.schema_refused', 'the database is newer');

async function tables(): Promise<number> {
  return (await real.query("select 1 from pg_tables where schemaname = 'public' and tablename = 'router_keys'")).rowCount;
}

it.each([
  ['unreachable', unreachable, 0],
  ['refused', refused, 3],
])('tries again after it was %s, and migrates', async (_, error, logged) => {
  const { log, errors, infos } = recording();
  const { database, tries } = failing(3, error);
  const migration = migrateInBackground({ database, log, retryMs: 1, refusedRetryMs: 1 });
  await migration.firstTry;
  expect(tries()).toBe(1);

  await expect.poll(() => infos.length, { timeout: 60_000 }).toBe(1);
  expect(await tables()).toBe(1);
  expect(errors).toHaveLength(logged);
  await migration.stop();
});

it('stop ends the pause, and no try follows', async () => {
  const { log } = recording();
  const { database, tries } = failing(Number.POSITIVE_INFINITY, unreachable);
  const migration = migrateInBackground({ database, log, retryMs: 3_600_000 });
  await migration.firstTry;
  await migration.stop();

  expect(tries()).toBe(1);
});
