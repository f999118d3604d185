import { systemClock } from '../clock.ts';
import { storeBundle } from '../config/bundle-store.ts';
import type { Bundle } from '../config/load-bundle.ts';
import { tracesOf } from '../config/traces-backend.ts';
import type { Database } from '../storage/database.ts';
import { type DatabaseClock, openDatabaseClock } from '../storage/database-clock.ts';
import { type OpenTracingOptions, openTracing } from '../telemetry/open-tracing.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { agentDatabase } from './agent-database.ts';
import type { Starting } from './run-process.ts';

interface AgentStoresConfig {
  tracing: OpenTracingOptions['config'];
  /** Whether the last traces are kept in memory, to be shown. Absent: no. */
  keepsTraces?: boolean;
}

type Starter = Pick<Starting<AgentStoresConfig>, 'config' | 'environment' | 'log' | 'metrics' | 'step' | 'releasers'>;

/**
 * What each process of an agent opens once its configuration is read: tracing to where the environment or the manifest says, the database and its clock.
 * Stores the configuration.
 */
export async function openAgentStores(
  { config, environment, log, metrics, step, releasers }: Starter,
  { service, bundle, openDatabase }: { service: string; bundle: Bundle; openDatabase: ReturnType<typeof agentDatabase> },
): Promise<{ tracing: Tracing; database: Database; databaseClock: DatabaseClock }> {
  const tracing = await openTracing({
    config: config.tracing,
    keepsTraces: config.keepsTraces ?? false,
    service,
    ...tracesOf(bundle.body, environment),
    log,
    onDrop: (count) => metrics.add('telemetryDropped', { kind: 'spans' }, count),
  });
  releasers.add('tracing', () => tracing.stop());
  const { database, postgres } = await openDatabase();
  const databaseClock = await step(`reading the clock of ${postgres}`, () => openDatabaseClock({ database, log, metrics, clock: systemClock }));
  releasers.add('database clock', () => databaseClock.stop());
  await step(`storing the agent's configuration in ${postgres}`, () => storeBundle(database, bundle));
  return { tracing, database, databaseClock };
}
