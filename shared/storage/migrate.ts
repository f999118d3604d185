import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database, Queryable } from './database.ts';
import { isTransientError, sqlStateOf } from './transient-error.ts';

/** `0007-name.sql`. The number orders the files and is never used twice. */
const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The same in every process that migrates a database of ours; any number, as long as it never changes. */
const LOCK_KEY = 5_317_204_011;

/** Longest time of one statement, in place of the database's own limit, which is made for indexed ones: rebuilding a large table takes minutes. */
const STATEMENT_TIMEOUT_MS = 600_000;

/** How long to wait for another process that migrates: as long as its statement may take. */
const LOCK_TIMEOUT_MS = STATEMENT_TIMEOUT_MS;

/** How long to try for tables that others use. */
const TABLES_TIMEOUT_MS = 60_000;

/** How often the holder of the lock is looked up while it is waited for. */
const HOLDER_EVERY_MS = 2_000;

/** How often the server looks whether the process behind a migration is still connected: the statement of one that died would hold its locks to its end. */
const CONNECTION_CHECK_MS = 2_000;

/**
 * How long to stand in line for a table at once. Everybody else's statements on that table line up behind us, and give up after two
 * seconds: so we leave the line before them, and come back.
 */
const TABLE_LOCK_TIMEOUT_MS = 1_000;
const TABLE_PAUSE_MS = 500;

/** PostgreSQL: `lock_not_available`. */
const LOCK_NOT_AVAILABLE = '55P03';

interface Migration {
  number: number;
  name: string;
  checksum: string;
  text: string;
}

export interface MigrateOptions {
  /** How long another process may migrate; default: 600 s, the longest that one of its statements may take. */
  lockTimeoutMs?: number;
  /** How long the tables of a migration may be used by others; default: 60 s. */
  tablesTimeoutMs?: number;
  /** Longest time of one statement of a migration; default: 600 s. */
  statementTimeoutMs?: number;
  /** Told now and then what is waited for: the session that holds the lock, then the migration that this call applies itself. */
  onWait?: (reason: string) => void;
}

interface Applying {
  lockTimeoutMs: number;
  statementTimeoutMs: number;
  /** The lock is had. */
  onLocked(): void;
  onFile(name: string): void;
}

/**
 * Brings the schema up to the files: each file that the table `schema_migrations` does not list runs in one transaction with its row.
 * Any number of processes may call it at once; an advisory lock lets one work, and the others find nothing left to do.
 *
 * @param folder where the files are; by default `migrations/` beside this file, in the sources as in `dist/`
 * @returns the names of the files applied by this call, in order
 * @throws `storage.schema_refused` when a file that was applied has changed or is gone, when a number is missing, when the database is
 * newer than the files, or when a file fails; `service.not_ready`, naming the session that held the lock for `lockTimeoutMs`, or when others
 * held the tables for `tablesTimeoutMs`
 */
export async function migrate(database: Database, folder: URL = new URL('./migrations/', import.meta.url), options: MigrateOptions = {}): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const applied: string[] = [];
  // One more round than there are files: the last finds nothing to do.
  for (let round = 0; round <= migrations.length; round += 1) {
    const name = await applyWithinTime(database, migrations, options);
    if (name === null) break;
    applied.push(name);
  }
  return applied;
}

/** @returns the file applied, or null when there is none left */
async function applyWithinTime(
  database: Database,
  migrations: readonly Migration[],
  { lockTimeoutMs = LOCK_TIMEOUT_MS, tablesTimeoutMs = TABLES_TIMEOUT_MS, statementTimeoutMs = STATEMENT_TIMEOUT_MS, onWait = () => {} }: MigrateOptions,
): Promise<string | null> {
  const onFile = (name: string) => onWait(`migration ${name} is being applied`);
  /** Counted from when the tables were first missed: the wait for the lock before that may be the longer one. */
  let untilMs: number | null = null;
  for (;;) {
    const waiting = watchHolder(database, onWait);
    const applying = { lockTimeoutMs, statementTimeoutMs, onLocked: waiting.stop, onFile };
    const outcome = await database
      // The wait for the lock is bounded by the server, and our side of the line must not give up before it.
      .transaction((handle) => applyNext(handle, migrations, applying), { statementTimeoutMs: Math.max(lockTimeoutMs, statementTimeoutMs) })
      .catch((error: unknown) => {
        if (error instanceof Busy) return error;
        throw error;
      })
      .finally(waiting.stop);
    if (!(outcome instanceof Busy)) return outcome;
    if (outcome.file === null) throw await lockNotHad(database, outcome, lockTimeoutMs);
    untilMs ??= Date.now() - TABLE_LOCK_TIMEOUT_MS + tablesTimeoutMs;
    if (Date.now() >= untilMs) {
      const message = `migration ${outcome.file} could not have its tables to itself for ${tablesTimeoutMs / 1_000} s`;
      throw new SwitchyardError('service.not_ready', message, { cause: outcome.cause });
    }
    await delay(TABLE_PAUSE_MS);
  }
}

/** Tells now and then which session holds the lock that is waited for. */
function watchHolder(database: Database, onWait: (reason: string) => void): { stop(): void } {
  let isOver = false;
  const look = async () => {
    const holder = await findHolder(database);
    if (holder !== null && !isOver) onWait(`the schema is being migrated by ${placeOf(holder)}`);
  };
  // What can't be looked up is not told; the lock itself is waited for all the same.
  const timer = setInterval(() => void look().catch(() => {}), HOLDER_EVERY_MS);
  return {
    stop: () => {
      isOver = true;
      clearInterval(timer);
    },
  };
}

/** A lock was not had in time; nothing was changed. */
class Busy extends Error {
  /** The file that waited for its tables; null when it was not our turn to migrate at all. */
  readonly file: string | null;

  constructor(file: string | null, cause: unknown) {
    super('a lock was not had in time', { cause });
    this.file = file;
  }
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

/** @returns the file applied, or null when there is none left @throws Busy */
async function applyNext(
  handle: Queryable,
  migrations: readonly Migration[],
  { lockTimeoutMs, statementTimeoutMs, onLocked, onFile }: Applying,
): Promise<string | null> {
  // Not every system that a server runs on knows this setting.
  await handle.query(
    `do $$ begin perform set_config('client_connection_check_interval', '${CONNECTION_CHECK_MS}ms', true); exception when others then null; end $$`,
  );
  await limitLocks(handle, lockTimeoutMs);
  // Of two limits of the same length the server reports that of the statement, which does not say what was waited for.
  await limitStatements(handle, 0);
  await handle.query('select pg_advisory_xact_lock($1)', [LOCK_KEY]).catch(busyOr(null));
  onLocked();
  await limitStatements(handle, statementTimeoutMs);
  await limitLocks(handle, TABLE_LOCK_TIMEOUT_MS);
  await handle.query(`create table if not exists schema_migrations (
    number int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await handle.query<Omit<Migration, 'text'>>('select number, name, checksum from schema_migrations order by number');
  rows.forEach((row, index) => {
    checkPast(row, index + 1, migrations);
  });
  const next = migrations[rows.length];
  if (next === undefined) return null;
  onFile(next.name);
  await handle.query(next.text).catch(busyOr(next.name)).catch(failedOr(next.name));
  await handle.query('insert into schema_migrations (number, name, checksum) values ($1, $2, $3)', [next.number, next.name, next.checksum]);
  return next.name;
}

async function limitLocks(handle: Queryable, timeoutMs: number): Promise<void> {
  await handle.query("select set_config('lock_timeout', $1, true)", [`${timeoutMs}ms`]);
}

/** @param timeoutMs 0: without a limit */
async function limitStatements(handle: Queryable, timeoutMs: number): Promise<void> {
  await handle.query("select set_config('statement_timeout', $1, true)", [`${timeoutMs}ms`]);
}

function busyOr(file: string | null): (cause: unknown) => never {
  return (cause) => {
    throw sqlStateOf(cause) === LOCK_NOT_AVAILABLE ? new Busy(file, cause) : cause;
  };
}

/** A file is at fault for what the server refuses, and not for a connection that was lost. */
function failedOr(name: string): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof Busy || isTransientError(cause)) throw cause;
    throw new SwitchyardError('storage.schema_refused', `migration ${name} failed, and nothing of it was kept`, { cause });
  };
}

async function lockNotHad(database: Database, { cause }: Busy, lockTimeoutMs: number): Promise<SwitchyardError> {
  const holder = await findHolder(database);
  const name = holder === null ? 'another process' : placeOf(holder);
  return new SwitchyardError('service.not_ready', `${name} has been migrating the database for over ${lockTimeoutMs / 1_000} s`, {
    cause,
    details: { holder },
  });
}

interface Holder {
  name: string;
  address: string | null;
  /** The process id of its backend, as `pg_terminate_backend` takes it. */
  session: number;
}

function placeOf({ name, address, session }: Holder): string {
  return `${name} (from ${address ?? 'this machine'}, session ${session})`;
}

/** The session that migrates at present: PostgreSQL shows the key of an advisory lock in two halves. Null: there is none any more. */
async function findHolder(database: Database): Promise<Holder | null> {
  const { rows } = await database.query<Holder>(
    `select application_name as name, host(client_addr) as address, pid as session from pg_stat_activity where pid in (
      select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1 and classid = $1 and objid = $2
      and database = (select oid from pg_database where datname = current_database()))`,
    [Math.floor(LOCK_KEY / 2 ** 32), LOCK_KEY % 2 ** 32],
  );
  return rows[0] ?? null;
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
