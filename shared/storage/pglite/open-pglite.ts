import { access, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import pg from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database } from '../database.ts';
import { columnTypes } from '../postgres/column-types.ts';
import { poolDatabase } from '../postgres/pool-database.ts';

/**
 * The embedded database: PostgreSQL inside this process, on one connection. An acknowledged write outlives the death of the process,
 * but not a loss of power, because the engine never calls fsync.
 *
 * @param folder where the files stand, made when missing; null keeps everything in memory. Nothing here keeps a second process out of
 * the folder, and two lose each other's data: hold it first (data-folder.ts), and put the database in a folder below the held one.
 * @throws `config.invalid` when the folder, or the database found in it, can't be used
 */
export async function openPglite({ folder }: { folder: string | null }): Promise<Database> {
  const pglite = folder === null ? await PGlite.create() : await openFolder(folder);
  // The one connection stays: an idle limit would only close and open it again.
  const config = createPgConfig(pglite);
  const pool = new pg.Pool({ ...config, max: 1, idleTimeoutMillis: 0, types: columnTypes });
  const forgetStatements = () => {
    config.connection.parsedStatements = {};
  };
  return poolDatabase(pool, { afterEnd: () => pglite.close(), forgetStatements });
}

/**
 * Making a database takes seconds and many files. While it goes on, a mark stands beside the folder: whoever finds the mark knows that the
 * process died meanwhile, that nobody was ever told of a write there, and starts anew. A half-made folder would otherwise never open.
 */
async function openFolder(folder: string): Promise<PGlite> {
  const mark = `${folder}.unfinished`;
  const isNew = await prepareFolder(folder, mark);
  const pglite = await PGlite.create({ dataDir: folder }).catch((cause: unknown) => {
    throw new SwitchyardError('config.invalid', `the database in ${folder} can't be opened: its files are damaged, or made by another version`, { cause });
  });
  if (isNew) await rm(mark, { force: true });
  return pglite;
}

/** @returns whether a database has yet to be made there */
async function prepareFolder(folder: string, mark: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (await exists(mark)) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      return true;
    }
    if (await exists(join(folder, 'PG_VERSION'))) return false;
    if ((await readdir(folder)).length > 0) throw new SwitchyardError('config.invalid', `${folder} holds other files and no database: choose an empty folder`);
    await writeFile(mark, '', { mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    throw new SwitchyardError('config.invalid', `the database's folder ${folder} can't be used`, { cause: error });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
