import type { Queryable } from '#shared/storage/database.ts';
import { isPassingFault } from '#shared/storage/transient-error.ts';

/** The same database; each time that it fails for a reason outside the statement, such as a lost connection, `onFault` is called. */
export function watchedDatabase(database: Queryable, onFault: () => void): Queryable {
  return {
    query: async <Row extends object>(...statement: Parameters<Queryable['query']>) => {
      try {
        return await database.query<Row>(...statement);
      } catch (error) {
        if (isPassingFault(error)) onFault();
        throw error;
      }
    },
  };
}
