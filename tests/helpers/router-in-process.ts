import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import { openTestApp, type TestApp } from '../../services/router-gateway/test-support/harness.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { routerConfig } from '../../shared/config/router-config.ts';
import type { Environment } from '../../shared/config/secret-ref.ts';
import { modelKeys } from '../../shared/keys/file-keys.ts';
import type { Database } from '../../shared/storage/database.ts';
import { memoryCache } from '../../shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';

export interface RouterInProcess {
  /** Without a path. */
  url: string;
  gateway: TestApp;
  database: Database;
  close(): Promise<void>;
}

interface RouterOptions {
  /** The router's file. */
  config: unknown;
  variables: Environment;
  /** Addresses at which pictures may be fetched. */
  outboundAllowHosts?: ReadonlySet<string>;
  /** Each reservation of the gateway waits for it. */
  beforeReservation?: () => Promise<void>;
}

/** A gateway on a real port and a worker with its ledger, on one bus, one database and one cache. */
export async function openRouterInProcess({
  config: file,
  variables,
  outboundAllowHosts = new Set(),
  beforeReservation,
}: RouterOptions): Promise<RouterInProcess> {
  const config = routerConfig.parse(file);
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  const cache = memoryCache({ clock: systemClock });
  const fileKeys = modelKeys(config, variables);
  const deps = { config, environment: variables, bus, database, cache, fileKeys, log: silentLog, clock: systemClock, outboundAllowHosts };
  const worker = await startRouterWorker(deps);
  const gateway = openTestApp(bus, { config, variables, database: beforeReservation === undefined ? database : delayed(database, beforeReservation), cache });
  const url = await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    gateway,
    database,
    close: async () => {
      await gateway.close();
      await worker.stop();
      await bus.close();
      await database.close();
    },
  };
}

function delayed(database: Database, beforeReservation: () => Promise<void>): Database {
  return {
    query: async (statement, parameters) => {
      const text = typeof statement === 'string' ? statement : statement.text;
      if (text.includes('insert into reservations')) await beforeReservation();
      return database.query(statement, parameters);
    },
    transaction: (work, options) => database.transaction(work, options),
    close: () => database.close(),
  };
}
