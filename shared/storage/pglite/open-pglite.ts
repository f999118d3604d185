import { access, mkdir, readdir, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database } from '../database.ts';
import { columnTypes } from '../postgres/column-types.ts';
import { type PoolDatabaseOptions, poolDatabase } from '../postgres/pool-database.ts';
import { EngineStream } from './engine-stream.ts';

/** After a crash the engine rewrites one whole log segment before it opens. */
const FREE_BYTES_TO_OPEN = 17 * 1024 * 1024;

/**
 * The embedded database: PostgreSQL in this process, on one connection. Acknowledged writes survive the death of the process but not a power loss:
 * the engine never calls fsync.
 *
 * @param folder created when missing; null: in memory. Two processes in one folder lose data: lock it first (data-folder.ts), and use a subfolder.
 * @param onPanic called when the engine panics, as when it can't write its log: it runs no further statement, and acknowledged writes are there
 * after reopening. By default the process ends.
 * @throws `config.invalid` when the folder, or the database in it, can't be used
 */
export async function openPglite({ folder, onPanic = endProcess }: { folder: string | null; onPanic?: (cause: Error) => void }): Promise<Database> {
  return pgliteDatabase(folder === null ? await PGlite.create() : await openFolder(folder), { onPanic });
}

/** A `Database` over an open engine; closing it closes the engine. @param options `onPanic`: as above */
export function pgliteDatabase(pglite: PGlite, { onPanic = endProcess, ...options }: Pick<PoolDatabaseOptions, 'onPanic' | 'maxInFlight'> = {}): Database {
  const stream = () => new EngineStream(pglite);
  // None of them is left to the variables PG….
  const connection = { ssl: false, sslnegotiation: 'postgres', user: 'postgres', database: 'postgres', host: 'localhost' } as const;
  // An idle timeout would only reopen the one connection.
  const pool = new pg.Pool({ stream, max: 1, idleTimeoutMillis: 0, types: columnTypes, ...connection });
  return poolDatabase(pool, { ...options, afterEnd: () => pglite.close(), onPanic });
}

/** Thrown outside all promises, so that it can't be caught: callers would wait for the engine for ever. */
function endProcess(cause: Error): void {
  process.nextTick(() => {
    throw new SwitchyardError('service.unreachable', 'the embedded database has panicked', { cause });
  });
}

/**
 * Creating a database takes seconds. Meanwhile a marker `.unfinished` stands beside the folder: a start that finds it knows that the process died
 * before any write was acknowledged, and starts over, since a half-made folder never opens. It is renamed to `.made`, which stays: without a
 * database beside it data was lost, and an empty database must not take its place unnoticed.
 */
async function openFolder(folder: string): Promise<PGlite> {
  const markers = { unfinished: `${folder}.unfinished`, made: `${folder}.made` };
  const isNew = await prepareFolder(folder, markers);
  try {
    const pglite = await PGlite.create({ dataDir: folder });
    if (isNew) await rename(markers.unfinished, markers.made);
    else {
      // Closing would write to a damaged database.
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

/** @returns whether the database has yet to be created */
async function prepareFolder(folder: string, { unfinished, made }: MarkerFiles): Promise<boolean> {
  try {
    const isThere = await exists(join(folder, 'PG_VERSION'));
    if (await exists(made)) {
      if (isThere) return false;
      const advice = `restore it from a backup, or remove ${made} and what is left of it to begin with an empty one`;
      throw new SwitchyardError('config.invalid', `the database in ${folder} is missing, or parts of it: ${advice}`);
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (await exists(unfinished)) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      return true;
    }
    if (isThere) return false;
    if ((await readdir(folder)).length > 0)
      throw new SwitchyardError('config.invalid', `${folder} contains other files and no database: choose an empty folder`);
    await writeFile(unfinished, '', { mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    throw new SwitchyardError('config.invalid', `the database's folder ${folder} can't be used${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Reads the first and the last row of each table by primary key. Checksums reveal damaged pages, but a truncated or missing table file would be
 * found only when it is read.
 */
async function probeTables(pglite: PGlite): Promise<void> {
  await pglite.transaction(async (handle) => {
    const { rows } = await handle.query<{ name: string; first: string | null; last: string | null }>(KEYS_OF_TABLES);
    // By the key's index, and from the heap, since the index holds no ctid.
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

/** The engine fails alike on a full disk and on damaged files, so the free space is checked. */
async function unusable(folder: string, cause: unknown): Promise<SwitchyardError> {
  const freeBytes = await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Number.POSITIVE_INFINITY,
  );
  if (freeBytes < FREE_BYTES_TO_OPEN) {
    const text = `the database in ${folder} can't be opened: its disk is full, or nearly; free some space, then start again`;
    return new SwitchyardError('config.invalid', text, { cause });
  }
  const advice = 'restore the folder from a backup, or set DATA_DIR to another one';
  return new SwitchyardError(
    'config.invalid',
    `the database in ${folder} can't be opened: its files are damaged, or were written by another version; ${advice}`,
    {
      cause,
    },
  );
}

/** Names the file and the cause, such as a read-only disk. */
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
