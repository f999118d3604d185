import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { runtimeStoreConformance } from '../conformance/runtime-store-conformance.ts';
import { sqlStoreUnderTest } from '../conformance/sql-store-under-test.ts';

runtimeStoreConformance('the store in PGlite', async () => {
  const database = await openTestDatabase();
  await migrate(database);
  return sqlStoreUnderTest(database);
});
