import { expect, inject, it } from 'vitest';
import { freshDatabase } from '../storage/conformance/fresh-database.ts';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openPostgres } from '../storage/postgres/open-postgres.ts';
import { isLockTimeout } from '../storage/transient-error.ts';
import { silentLog } from '../telemetry/log.ts';
import { noMetrics } from '../telemetry/metrics.ts';
import { beginSpend } from './reservation-statements.ts';
import { Reservations } from './reservations.ts';
import { reservationCases } from './test-support/reservation-cases.ts';

reservationCases('a PostgreSQL server', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const database = await openPostgres({ url: fresh.url, applicationName: 'reservations', log: silentLog });
  await migrate(database);
  return {
    database,
    close: async () => {
      await database.close();
      await fresh.drop();
    },
  };
});

it.each(['reserve-calls', 'reserve-together'])(
  'waits again for the row of a key that another statement has locked for longer than the driver lets %s',
  async (name) => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    const url = `${fresh.url}?lock_timeout=100&idle_in_transaction_session_timeout=60000`;
    const database = await openPostgres({ url, applicationName: 'reservations', log: silentLog });
    try {
      await migrate(database);
      await database.query(beginSpend, [['k']]);
      let onLocked = () => {};
      let onTimeout = (_: unknown) => {};
      const locked = new Promise<void>((resolve) => {
        onLocked = resolve;
      });
      const timedOut = new Promise<unknown>((resolve) => {
        onTimeout = resolve;
      });
      const watched: Database = {
        query: async (statement, parameters) => {
          try {
            return await database.query(statement, parameters);
          } catch (error) {
            if (isLockTimeout(error)) onTimeout(typeof statement === 'string' ? statement : statement.name);
            throw error;
          }
        },
        transaction: (work) => database.transaction(work),
        close: () => database.close(),
      };
      const reservations = new Reservations({ database: watched, log: silentLog, metrics: noMetrics, answerMs: 60_000 });
      const asked = { callId: 'c', keyId: 'k', amountNano: 1, limitNano: 10, limitReset: null, deadlineAtMs: Date.now() };
      if (name === 'reserve-together') await reservations.reserve({ ...asked, callId: 'first', amountNano: 0 });
      const holding = database.transaction(async (handle) => {
        await handle.query('select from key_spend for update');
        onLocked();
        await timedOut;
      });
      await locked;
      await expect(reservations.reserve(asked)).resolves.toBeUndefined();
      await holding;
      expect(await timedOut).toBe(name);
      expect((await database.query('select reserved_nano from key_spend')).rows).toEqual([{ reserved_nano: 1 }]);
      await reservations.stop();
    } finally {
      await database.close();
      await fresh.drop();
    }
  },
  120_000,
);
