import { readFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { inject } from 'vitest';
import type { Database } from '../../database.ts';
import { pgliteDatabase } from '../open-pglite.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the dumped data folder of a migrated, empty embedded database. */
    databaseTemplate: string;
  }
}

/** An embedded in-memory database with all migrations applied. Loaded from the run's template: creating one takes five times the CPU. */
export async function openTestDatabase(): Promise<Database> {
  const dump = new Blob([await readFile(inject('databaseTemplate'))]);
  return pgliteDatabase(await PGlite.create({ loadDataDir: dump }));
}
