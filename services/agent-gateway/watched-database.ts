import type { Queryable } from '#shared/storage/database.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';

/** The same database, with `onFault` called on each transient error. */
export function watchedDatabase(database: Queryable, onFault: () => void): Queryable {
  return {
    query: async <Row extends object>(...statement: Parameters<Queryable['query']>) => {
      try {
        return await database.query<Row>(...statement);
      } catch (error) {
        if (isTransientError(error)) onFault();
        throw error;
      }
    },
  };
}
