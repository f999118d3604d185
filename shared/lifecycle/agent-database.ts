import { databaseUrl } from '../config/database-url.ts';
import { readManifest } from '../config/load-bundle.ts';
import { once } from '../once.ts';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { addressOf } from './boot.ts';
import type { Starting } from './run-process.ts';

interface AgentDatabaseConfig {
  /** `DATABASE_URL`; undefined: not set. */
  databaseUrl?: string | undefined;
  manifestPath: string;
}

interface OpenedDatabase {
  database: Database;
  /** As steps of the start name it. */
  postgres: string;
}

/**
 * The database of an agent's process: `DATABASE_URL`, or what the manifest says. The first call opens and migrates it, and adds its release; later calls get
 * the same one. It is called before the documents are read if they are stored in it, and after them otherwise.
 * @param open the driver, which only a main.ts imports
 */
export function agentDatabase(
  { config, environment, log, step, releasers }: Pick<Starting<AgentDatabaseConfig>, 'config' | 'environment' | 'log' | 'step' | 'releasers'>,
  open: (url: string) => Promise<Database>,
): () => Promise<OpenedDatabase> {
  return once(async () => {
    const { url, warnings } = databaseUrl({ given: config.databaseUrl, manifest: await readManifest(config.manifestPath), environment });
    for (const warning of warnings) log.warn({}, warning);
    const postgres = `PostgreSQL at ${addressOf(url)}`;
    const database = await step(`connecting to ${postgres}`, () => open(url));
    releasers.add('database', () => database.close());
    await step(`migrating the schema of ${postgres}`, (because) => migrate(database, undefined, { onWait: because }), { limitMs: null });
    return { database, postgres };
  });
}
