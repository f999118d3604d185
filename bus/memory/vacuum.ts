import type { ComponentDeps } from './types.ts';

/** A vacuum of this many takes some 10 ms. */
const VACUUM_AFTER_ROWS = 5_000;

/**
 * Vacuums a table: the embedded database has no autovacuum, and its files would grow without bound.
 * @returns counts deleted rows, and vacuums past the limit; never throws, since the deletion itself succeeded
 */
export function vacuumer(
  { database, log }: ComponentDeps,
  table: 'bus_log' | 'bus_work' | 'bus_blobs' | 'bus_usage',
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
