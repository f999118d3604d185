import type { ComponentDeps } from './types.ts';

/** Dead rows that may gather before they are cleared; clearing this many takes some 10 ms. */
const VACUUM_AFTER_ROWS = 5_000;

/**
 * Clears dead rows of a table that lives on insert and delete. The embedded database has no background process that would do
 * it: without this its files would grow for ever.
 * @returns a function that counts deleted rows and clears when enough have gathered; it never throws, since the deletion itself went well
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
