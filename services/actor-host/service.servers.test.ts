import { afterAll, afterEach, beforeAll, inject } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { type FreshDatabase, freshDatabase } from '#shared/storage/conformance/fresh-database.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/test-services.mjs';
import { commandCases } from './test-support/command-cases.ts';
import { emptyTables } from './test-support/empty-tables.ts';
import { hostCases } from './test-support/host-cases.ts';
import { type House, openHouse, type Stores } from './test-support/house.ts';
import { runCases } from './test-support/run-cases.ts';

/** The same cases as on the embedded drivers, each host on connections of its own. */
let fresh: FreshDatabase;
let own: Database;
const houses: House[] = [];

beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
  own = await openPostgres({ url: fresh.url, applicationName: 'actor-host test', log: silentLog });
  await migrate(own);
});
afterEach(async () => {
  await Promise.all(houses.splice(0).map((house) => house.close()));
});
afterAll(async () => {
  await own?.close();
  await fresh?.drop();
});

async function openStores(): Promise<Stores> {
  await emptyTables(own);
  const servers: NatsServer[] = [await startNatsServer()];
  const databases: Database[] = [];
  const buses: Bus[] = [];
  return {
    async openDatabase() {
      const database = await openPostgres({ url: fresh.url, applicationName: 'actor-host', maxConnections: 3, log: silentLog });
      databases.push(database);
      return database;
    },
    async openBus() {
      const bus = await openNatsBus({ servers: servers.at(-1)?.url ?? '', user: null, password: null, log: silentLog });
      buses.push(bus);
      return bus;
    },
    loseBus: async () => {
      servers.push(await startNatsServer());
    },
    async close() {
      await Promise.all(buses.map((bus) => bus.close()));
      await Promise.all(databases.map((database) => database.close()));
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

const open = async () => {
  const house = await openHouse(await openStores());
  houses.push(house);
  return house;
};

commandCases(open);
hostCases(open);
runCases(open);
