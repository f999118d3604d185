import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database, Queryable } from './database.ts';

/** `0007-name.sql`. The number orders the files and is never used twice. */
const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The same in every process that migrates a database of ours; any number, as long as it never changes. */
const LOCK_KEY = 5_317_204_011;

/** How long to wait for another process that migrates, or for a table that it has locked. */
const LOCK_TIMEOUT_MS = 60_000;

/** PostgreSQL: `lock_not_available`. */
const LOCK_NOT_AVAILABLE = '55P03';

interface Migration {
  number: number;
  name: string;
  checksum: string;
  text: string;
}

/**
 * Brings the schema up to the files: each file that the table `schema_migrations` does not list runs in one transaction with its row.
 * Any number of processes may call it at once; an advisory lock lets one work, and the others find nothing left to do.
 *
 * @param folder where the files are; by default `migrations/` beside this file, in the sources as in `dist/`
 * @returns the names of the files applied by this call, in order
 * @throws `storage.schema_refused` when a file that was applied has changed or is gone, when a number is missing, when the database is
 * newer than the files, or when a file fails; `service.not_ready` when another process held the lock too long
 */
export async function migrate(database: Database, folder: URL = new URL('./migrations/', import.meta.url)): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const applied: string[] = [];
  // One more round than there are files: the last finds nothing to do.
  for (let round = 0; round <= migrations.length; round += 1) {
    const name = await database.transaction((handle) => applyNext(handle, migrations));
    if (name === null) break;
    applied.push(name);
  }
  return applied;
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const number = Number(FILE_NAME.exec(name)?.[1]);
    if (number !== migrations.length + 1) throw refused(`${name} stands where migration ${migrations.length + 1} should: numbers run from 0001 without gaps`);
    // A checkout may have changed the line ends, and they mean nothing to SQL.
    const text = (await readFile(new URL(name, folder), 'utf8')).replaceAll('\r\n', '\n');
    migrations.push({ number, name, checksum: createHash('sha256').update(text).digest('hex'), text });
  }
  return migrations;
}

/** @returns the file applied, or null when there is none left */
async function applyNext(handle: Queryable, migrations: readonly Migration[]): Promise<string | null> {
  await lock(handle);
  await handle.query(`create table if not exists schema_migrations (
    number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await handle.query<Omit<Migration, 'text'>>('select number, name, checksum from schema_migrations order by number');
  rows.forEach((row, index) => {
    checkPast(row, index + 1, migrations);
  });
  const next = migrations[rows.length];
  if (next === undefined) return null;
  try {
    await handle.query(next.text);
  } catch (cause) {
    throw new SwitchyardError('storage.schema_refused', `migration ${next.name} failed, and nothing of it was kept`, { cause });
  }
  await handle.query('insert into schema_migrations (number, name, checksum) values ($1, $2, $3)', [next.number, next.name, next.checksum]);
  return next.name;
}

async function lock(handle: Queryable): Promise<void> {
  await handle.query("select set_config('lock_timeout', $1, true)", [`${LOCK_TIMEOUT_MS}ms`]);
  try {
    await handle.query('select pg_advisory_xact_lock($1)', [LOCK_KEY]);
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === LOCK_NOT_AVAILABLE)) throw cause;
    throw new SwitchyardError('service.not_ready', `another process has been migrating the database for over ${LOCK_TIMEOUT_MS / 1_000} s`, { cause });
  }
}

function checkPast(row: Omit<Migration, 'text'>, expected: number, migrations: readonly Migration[]): void {
  const file = migrations[row.number - 1];
  if (file === undefined) {
    throw refused(`the database is newer than this program: it has migration ${row.name}, and the last one known here is number ${migrations.length}`);
  }
  if (row.number !== expected) throw refused(`the database has migration ${row.name} but not number ${expected}`);
  if (row.name !== file.name) throw refused(`the database has migration ${row.name} where the files have ${file.name}`);
  if (row.checksum !== file.checksum) throw refused(`migration ${file.name} was changed after it had been applied: put the change into a new file`);
}

function refused(message: string): SwitchyardError {
  return new SwitchyardError('storage.schema_refused', message);
}
