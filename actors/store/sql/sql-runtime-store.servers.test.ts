import { afterAll, beforeAll, inject } from 'vitest';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { runtimeStoreConformance } from '../conformance/runtime-store-conformance.ts';
import { sqlStoreUnderTest } from '../conformance/sql-store-under-test.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
});
afterAll(() => fresh?.drop());

runtimeStoreConformance('the store in PostgreSQL', async () => {
  const database = await openPostgres({ url: fresh.url, applicationName: 'runtime-store', log: silentLog });
  await migrate(database);
  return sqlStoreUnderTest(database);
});
