import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { isTransientError, sqlStateOf } from '#shared/storage/transient-error.ts';

/** A table or column is missing: the database is back, and its schema is not migrated yet. */
const SCHEMA_MISSING: ReadonlySet<string> = new Set(['42P01', '42703']);

/**
 * The same database; while it can't answer, queries reject with `service.not_ready` and a time to retry.
 * @param database null: none is configured
 * @param what is stored there, for the message
 */
export function neededDatabase(database: Queryable | null, what: string, retryAfterMs: number): Queryable {
  const notReady = (message: string, cause?: unknown) => new SwitchyardError('service.not_ready', message, { cause, details: { retryAfterMs } });
  return {
    async query<Row extends object>(...statement: Parameters<Queryable['query']>) {
      if (database === null) throw notReady(`${what} need a database, and this gateway has none: DATABASE_URL is not set`);
      try {
        return await database.query<Row>(...statement);
      } catch (error) {
        const isMissing = SCHEMA_MISSING.has(sqlStateOf(error) ?? '');
        if (isMissing || isTransientError(error)) throw notReady(`The database of ${what.toLowerCase()} does not answer`, error);
        throw error;
      }
    },
  };
}
