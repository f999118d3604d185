import { readFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { inject } from 'vitest';
import type { Database } from '../../database.ts';
import { pgliteDatabase } from '../open-pglite.ts';
import { stateOf } from './template-state.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the dumped data folder of a migrated, empty embedded database. */
    databaseTemplate: string;
    /** Path of the same without any migration. */
    emptyDatabaseTemplate: string;
  }
}

/** Closed by their tests and as they were loaded: files that share a process use the same engines in turn. */
const idle: PGlite[] = [];

/**
 * An embedded in-memory database with all migrations applied. Loaded from the run's template, as creating one takes five times the CPU; when it is
 * closed it is brought back to the template's state for the next call in this process, as loading takes ten times the CPU of that.
 */
export async function openTestDatabase(): Promise<Database> {
  return pgliteDatabase(idle.pop() ?? (await load()));
}

/** The same without any migration; it ends when it is closed. */
export async function openEmptyDatabase(): Promise<Database> {
  return pgliteDatabase(await loadEmptyEngine());
}

/** The engine of an empty database. */
export function loadEmptyEngine(): Promise<PGlite> {
  return loadDump(inject('emptyDatabaseTemplate'));
}

async function loadDump(path: string): Promise<PGlite> {
  return PGlite.create({ loadDataDir: new Blob([await readFile(path)]) });
}

async function load(): Promise<PGlite> {
  const pglite = await loadDump(inject('databaseTemplate'));
  const { restore } = await stateOf(pglite);
  const end = pglite.close.bind(pglite);
  pglite.close = async () => {
    if (await restore()) idle.push(pglite);
    else await end();
  };
  return pglite;
}
