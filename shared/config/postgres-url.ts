import type { z } from 'zod';
import type { sslMode } from '../contracts/manifest/search.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type Environment, resolveSecret, variableOf } from './secret-ref.ts';

/** A PostgreSQL server, as a manifest names it. */
export interface PostgresServer {
  hostname: string;
  port: number;
  user: string;
  /** Reference to a variable. */
  password: string;
  dbname: string;
  sslmode: z.infer<typeof sslMode>;
}

/**
 * @param path of the block in the manifest, for errors
 * @throws `config.invalid` when the password's variable is not set, or no URL can have the name of the database
 */
export function postgresUrl({ hostname, port, user, password: reference, dbname, sslmode }: PostgresServer, path: string, environment: Environment): string {
  const password = resolveSecret(reference, environment);
  if (password === null) throw new SwitchyardError('config.invalid', `${path}.password: the environment variable ${variableOf(reference)} is not set`);
  // `pg` decodes no such characters in a URL's path.
  if (decodeURI(encodeURIComponent(dbname)) !== dbname) throw new SwitchyardError('config.invalid', `${path}.dbname must hold none of ; / ? : @ & = + $ , #`);
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return `postgres://${login}@${hostname}:${port}/${encodeURIComponent(dbname)}?sslmode=${sslmode}`;
}
