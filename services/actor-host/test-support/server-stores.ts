import type { Bus } from '#bus/bus.ts';
import type { Database } from '#shared/storage/database.ts';
import { emptyTables } from './empty-tables.ts';
import type { Stores } from './test-cluster.ts';

interface Broker {
  url: string;
  close(): Promise<void>;
}

interface ServerStores<OfTest extends Broker> extends Stores {
  server(): OfTest;
  /** Address of the next bus, instead of the server's own. */
  nextBusAt(url: string): void;
}

interface ServerDrivers<OfTest extends Broker> {
  startBroker(): Promise<OfTest>;
  /** The test's own connection. */
  own: Database;
  openDatabase(): Promise<Database>;
  openBus(url: string): Promise<Bus>;
}

/** A broker per test and a shared database, emptied; each host has its own connections. */
export async function openServerStores<OfTest extends Broker>({
  own,
  startBroker,
  openDatabase,
  openBus,
}: ServerDrivers<OfTest>): Promise<ServerStores<OfTest>> {
  await emptyTables(own);
  const servers = [await startBroker()];
  const databases: Database[] = [];
  const buses: Bus[] = [];
  let nextUrl: string | null = null;
  const server = () => servers.at(-1) as OfTest;
  return {
    server,
    nextBusAt: (busUrl) => {
      nextUrl = busUrl;
    },
    async openDatabase() {
      const database = await openDatabase();
      databases.push(database);
      return database;
    },
    async openBus() {
      const bus = await openBus(nextUrl ?? server().url);
      nextUrl = null;
      buses.push(bus);
      return bus;
    },
    loseBus: async () => {
      servers.push(await startBroker());
    },
    async close() {
      await Promise.all(buses.map((bus) => bus.close()));
      await Promise.all(databases.map((database) => database.close()));
      await Promise.all(servers.map((one) => one.close()));
    },
  };
}
