import { access, mkdir, readdir, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import pg from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database } from '../database.ts';
import { columnTypes } from '../postgres/column-types.ts';
import { poolDatabase } from '../postgres/pool-database.ts';

/** After a crash the engine writes its log anew before it is there: a whole segment of it. */
const FREE_BYTES_TO_OPEN = 17 * 1024 * 1024;

/**
 * The embedded database: PostgreSQL inside this process, on one connection. An acknowledged write outlives the death of the process,
 * but not a loss of power, because the engine never calls fsync.
 *
 * @param folder where the files stand, made when missing; null keeps everything in memory. Nothing here keeps a second process out of
 * the folder, and two lose each other's data: hold it first (data-folder.ts), and put the database in a folder below the held one.
 * @param onPanic told why when the engine gives up, as it does when it can't write its log: it answers no statement any more, and all that
 * it has acknowledged is there when it is opened again. By default a fault that ends the process.
 * @throws `config.invalid` when the folder, or the database found in it, can't be used
 */
export async function openPglite({ folder, onPanic = endProcess }: { folder: string | null; onPanic?: (cause: Error) => void }): Promise<Database> {
  return pgliteDatabase(folder === null ? await PGlite.create() : await openFolder(folder), onPanic);
}

/** The port over an engine that is open; closing the database closes the engine. @param onPanic as above */
export function pgliteDatabase(pglite: PGlite, onPanic: (cause: Error) => void = endProcess): Database {
  // The one connection stays: an idle limit would only close and open it again.
  const config = createPgConfig(pglite);
  const pool = new pg.Pool({ ...config, max: 1, idleTimeoutMillis: 0, types: columnTypes });
  const forgetStatements = () => {
    config.connection.parsedStatements = {};
  };
  return poolDatabase(pool, { afterEnd: () => pglite.close(), forgetStatements, onPanic });
}

/** From outside all promises, so that nobody can catch it: who waits for the engine would wait for ever. */
function endProcess(cause: Error): void {
  process.nextTick(() => {
    throw new SwitchyardError('service.unreachable', 'the embedded database has given up', { cause });
  });
}

/**
 * Making a database takes seconds and many files. While it goes on, a mark stands beside the folder: whoever finds the mark knows that the
 * process died meanwhile, that nobody was ever told of a write there, and starts anew. A half-made folder would otherwise never open.
 * Once it is made, the mark becomes another one, which stays: whoever finds that one and no database knows that one is lost, and must not
 * go on with an empty one as if nothing had happened.
 */
async function openFolder(folder: string): Promise<PGlite> {
  const markers = { unfinished: `${folder}.unfinished`, made: `${folder}.made` };
  const isNew = await prepareFolder(folder, markers);
  try {
    const pglite = await PGlite.create({ dataDir: folder });
    if (isNew) await rename(markers.unfinished, markers.made);
    else {
      // Not closed when it is damaged: that would write to it.
      await probeTables(pglite);
      await writeFile(markers.made, '', { mode: 0o600 });
    }
    return pglite;
  } catch (cause) {
    throw await unusable(folder, cause);
  }
}

interface MarkerFiles {
  unfinished: string;
  made: string;
}

/** @returns whether a database has yet to be made there */
async function prepareFolder(folder: string, { unfinished, made }: MarkerFiles): Promise<boolean> {
  try {
    const isThere = await exists(join(folder, 'PG_VERSION'));
    if (await exists(made)) {
      if (isThere) return false;
      const advice = `restore it from a copy, or remove ${made} and what is left of it to begin with an empty one`;
      throw new SwitchyardError('config.invalid', `the database in ${folder} is gone, or parts of it: ${advice}`);
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (await exists(unfinished)) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      return true;
    }
    if (isThere) return false;
    if ((await readdir(folder)).length > 0) throw new SwitchyardError('config.invalid', `${folder} holds other files and no database: choose an empty folder`);
    await writeFile(unfinished, '', { mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    throw new SwitchyardError('config.invalid', `the database's folder ${folder} can't be used${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Reads the first and the last row of each table by its primary key. Pages have checksums, so what is damaged can't be read unnoticed;
 * but a table that was cut off, or whose file is gone, would otherwise be found by the first customer who needs it.
 */
async function probeTables(pglite: PGlite): Promise<void> {
  await pglite.transaction(async (handle) => {
    const { rows } = await handle.query<{ name: string; first: string | null; last: string | null }>(KEYS_OF_TABLES);
    // In the order of the key, so through its index, and out of the table itself, since the index knows no ctid.
    await handle.query('set local enable_seqscan = off');
    await handle.query('set local enable_sort = off');
    for (const { name, first, last } of rows) {
      for (const order of [first, last]) await handle.query(`select ctid from ${name} ${order === null ? '' : `order by ${order}`} limit 1`);
    }
  });
}

const KEYS_OF_TABLES = `
  select c.oid::regclass::text as name, string_agg(quote_ident(a.attname), ', ' order by k.place) as first,
    string_agg(quote_ident(a.attname) || ' desc', ', ' order by k.place) as last
  from pg_class c
  left join pg_index i on i.indrelid = c.oid and i.indisprimary
  left join lateral unnest(i.indkey) with ordinality as k(number, place) on true
  left join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
  group by c.oid`;

/** Why a database could not be opened. Without room the engine ends in the same way as on damaged files, so the disk itself is asked. */
async function unusable(folder: string, cause: unknown): Promise<SwitchyardError> {
  const freeBytes = await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Number.POSITIVE_INFINITY,
  );
  if (freeBytes < FREE_BYTES_TO_OPEN) {
    const text = `the database in ${folder} can't be opened: its disk is full, or nearly; make room, and start again`;
    return new SwitchyardError('config.invalid', text, { cause });
  }
  const advice = 'restore the folder from a copy, or choose another one (DATA_DIR)';
  return new SwitchyardError('config.invalid', `the database in ${folder} can't be opened: its files are damaged, or made by another version; ${advice}`, {
    cause,
  });
}

/** The system's words: they name the file and what is the matter, such as a disk that is full or only read. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? `: ${error.message}` : '';
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
