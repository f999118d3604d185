import type { Bus } from '#bus/bus.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { emptyTables } from './empty-tables.ts';
import type { Stores } from './test-cluster.ts';

export interface Drivers {
  openDatabase(): Promise<Database>;
  openBus(database: Database): Promise<Bus>;
}

/** The embedded drivers: one database per file, emptied for each cluster, since opening one takes longer than most tests. */
export function embeddedStores(drivers: Drivers): { open(): Promise<Stores>; close(): Promise<void> } {
  let opened: Promise<Database> | null = null;
  const databaseOf = async () => {
    const database = await drivers.openDatabase();
    await migrate(database);
    return database;
  };
  return {
    async open() {
      opened ??= databaseOf();
      const database = await opened;
      await emptyTables(database);
      const openBus = () => drivers.openBus(database);
      let bus: Bus = await openBus();
      return {
        // Hosts share the database, so closing a handle must not close it.
        openDatabase: async () => ({
          query: (statement, parameters) => database.query(statement, parameters),
          transaction: (work) => database.transaction(work),
          close: async () => {},
        }),
        openBus: async () => bus,
        async loseBus() {
          for (const table of ['bus_log', 'bus_work', 'bus_meta']) await database.query(`delete from ${table}`);
          bus = await openBus();
        },
        close: async () => {},
      };
    },
    close: async () => (await opened)?.close(),
  };
}
