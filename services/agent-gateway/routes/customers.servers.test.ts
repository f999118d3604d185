import { afterAll, afterEach, beforeAll, inject } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { customerCases } from '../test-support/customer-cases.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let fresh: FreshDatabase;
let deployment: TestDeployment;
beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  const database = await openPostgres({ url: fresh.url, applicationName: 'customers', log: silentLog });
  await migrate(database);
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(async () => {
  await deployment?.close();
  await fresh?.drop();
});

customerCases(() => deployment);
