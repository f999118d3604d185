import type { ComponentDeps } from './types.ts';

/** Dead rows before a vacuum; one of this size takes some 10 ms. */
const VACUUM_AFTER_ROWS = 5_000;

/**
 * Vacuums a table with many inserts and deletes. The embedded database has no autovacuum: without this its files would grow without bound.
 * @returns a function that counts deleted rows and vacuums past the limit; it never throws, since the deletion itself succeeded
 */
export function vacuumer(
  { database, log }: ComponentDeps,
  table: 'bus_log' | 'bus_work' | 'bus_blobs',
  afterRows = VACUUM_AFTER_ROWS,
): (deletedRows: number) => Promise<void> {
  let obsoleteRows = 0;
  return async (deletedRows) => {
    obsoleteRows += deletedRows;
    if (obsoleteRows < afterRows) return;
    obsoleteRows = 0;
    try {
      await database.query(`vacuum ${table}`);
    } catch (error) {
      log.warn({ err: error, table }, 'dead rows could not be cleared');
    }
  };
}
