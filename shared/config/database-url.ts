import type { Manifest } from '../contracts/manifest/manifest.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { postgresUrl } from './postgres-url.ts';
import type { Environment } from './secret-ref.ts';

interface DatabaseUrlOptions {
  /** `DATABASE_URL`; undefined: not set. */
  given: string | undefined;
  manifest: Manifest;
  environment: Environment;
}

/**
 * The database's URL: `DATABASE_URL`, or what the manifest's `database` says.
 * @throws `config.invalid` when there is neither, or the password's variable is not set
 */
export function databaseUrl({ given, manifest, environment }: DatabaseUrlOptions): { url: string; warnings: string[] } {
  const { database } = manifest.agent_config;
  if (given !== undefined) {
    return {
      url: given,
      warnings: database === null ? [] : ["agent_config.database is not used: DATABASE_URL is set, and goes before the manifest's database"],
    };
  }
  if (database === null) throw new SwitchyardError('config.invalid', 'DATABASE_URL: is missing, and the manifest has no agent_config.database');
  return { url: postgresUrl(database, 'agent_config.database', environment), warnings: [] };
}
