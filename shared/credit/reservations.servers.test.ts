import { inject } from 'vitest';
import { freshDatabase } from '../storage/conformance/fresh-database.ts';
import { migrate } from '../storage/migrate.ts';
import { openPostgres } from '../storage/postgres/open-postgres.ts';
import { silentLog } from '../telemetry/log.ts';
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
