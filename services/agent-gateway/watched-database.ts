import type { Database } from '#shared/storage/database.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';

type Transactional = Pick<Database, 'query' | 'transaction'>;

/** The same database, with `onFault` called on each transient error. */
export function watchedDatabase(database: Transactional, onFault: () => void): Transactional {
  const watched = async <Result>(result: Promise<Result>): Promise<Result> => {
    try {
      return await result;
    } catch (error) {
      if (isTransientError(error)) onFault();
      throw error;
    }
  };
  return {
    query: (...statement) => watched(database.query(...statement)),
    transaction: (work, options) => watched(database.transaction(work, options)),
  };
}
