import { afterAll, afterEach, beforeAll, inject } from 'vitest';
import { openNatsBus } from '../../bus/nats/nats-bus.ts';
import { startNatsServer } from '../../scripts/servers/test-services.mjs';
import { callbackCases } from '../../services/actor-host/test-support/callback-cases.ts';
import { commandCases } from '../../services/actor-host/test-support/command-cases.ts';
import { dispatchCases } from '../../services/actor-host/test-support/dispatch-cases.ts';
import { hostCases } from '../../services/actor-host/test-support/host-cases.ts';
import { logChangeCases } from '../../services/actor-host/test-support/log-change-cases.ts';
import { patchCases } from '../../services/actor-host/test-support/patch-cases.ts';
import { runCancelCases } from '../../services/actor-host/test-support/run-cancel-cases.ts';
import { runCases } from '../../services/actor-host/test-support/run-cases.ts';
import { runSessionCases } from '../../services/actor-host/test-support/run-session-cases.ts';
import { openServerStores } from '../../services/actor-host/test-support/server-stores.ts';
import { storedSessionCases } from '../../services/actor-host/test-support/stored-session-cases.ts';
import { takeOverCases } from '../../services/actor-host/test-support/take-over-cases.ts';
import { openTestCluster, type TestCluster } from '../../services/actor-host/test-support/test-cluster.ts';
import { toolEventCases } from '../../services/actor-host/test-support/tool-event-cases.ts';
import { trustCases } from '../../services/actor-host/test-support/trust-cases.ts';
import { unusedRowsCases } from '../../services/actor-host/test-support/unused-rows-cases.ts';
import { type FreshDatabase, freshDatabase } from '../../shared/storage/conformance/fresh-database.ts';
import type { Database } from '../../shared/storage/database.ts';
import { migrate } from '../../shared/storage/migrate.ts';
import { openPostgres } from '../../shared/storage/postgres/open-postgres.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { casesOfToday } from '../helpers/tier.ts';

/** Of about the same length. All of these run on the embedded drivers every time. */
const halves = [
  [commandCases, hostCases, dispatchCases, storedSessionCases],
  [patchCases, logChangeCases, runCases, runCancelCases, runSessionCases, callbackCases, takeOverCases, toolEventCases, trustCases, unusedRowsCases],
];

let fresh: FreshDatabase;
let own: Database;
const clusters: TestCluster[] = [];

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  own = await openPostgres({ url: fresh.url, applicationName: 'actor-host test', log: silentLog });
  await migrate(own);
});
afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.close()));
});
afterAll(async () => {
  await own?.close();
  await fresh?.drop();
});

/** Each host has its own connections. */
async function open(): Promise<TestCluster> {
  const stores = await openServerStores({
    own,
    startBroker: () => startNatsServer(),
    openDatabase: () => openPostgres({ url: fresh.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog }),
    openBus: (url: string) => openNatsBus({ servers: url, user: null, password: null, log: silentLog }),
  });
  const cluster = await openTestCluster(stores);
  clusters.push(cluster);
  return cluster;
}

for (const cases of casesOfToday(halves).flat()) cases(open);
