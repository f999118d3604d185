import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database, Queryable } from './database.ts';
import { isLockTimeout, isTransientError } from './transient-error.ts';

/** `0007-name.sql`. The number orders the files and is never reused. */
const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** Arbitrary, but the same in every process and release. */
const LOCK_KEY = 5_317_204_011;

/** Replaces the database's own limit: rebuilding a large table takes minutes. */
const STATEMENT_TIMEOUT_MS = 600_000;

/** Another process may hold the lock for as long. */
const LOCK_TIMEOUT_MS = STATEMENT_TIMEOUT_MS;

/** How long to retry for table locks. */
const TABLES_TIMEOUT_MS = 60_000;

/** How often to report the session that holds the lock. */
const REPORT_EVERY_MS = 2_000;

/** The statement of a dead client would keep its locks until it ends. */
const CONNECTION_CHECK_MS = 2_000;

/**
 * One wait for a table lock. Other statements on the table queue behind ours and time out after 2 s, so we leave the queue before that and retry.
 */
const TABLE_LOCK_TIMEOUT_MS = 1_000;
const TABLE_PAUSE_MS = 500;

interface Migration {
  number: number;
  name: string;
  checksum: string;
  text: string;
}

export interface MigrateOptions {
  /** Wait for another process's migration; default: 600 s. */
  lockTimeoutMs?: number;
  /** Wait for table locks; default: 60 s. */
  tablesTimeoutMs?: number;
  /** Limit of one statement; default: 600 s. */
  statementTimeoutMs?: number;
  /** Called repeatedly with the session that holds the lock, then with the migration that this call applies. */
  onWait?: (reason: string) => void;
}

interface Applying {
  lockTimeoutMs: number;
  statementTimeoutMs: number;
  onLocked(): void;
  onFile(name: string): void;
}

/**
 * Applies the pending migrations: each file that `schema_migrations` does not list runs in one transaction with its row. Several processes may call
 * it: an advisory lock admits one, and the others find nothing pending.
 *
 * @param folder by default `migrations/` beside this file, in the sources as in `dist/`
 * @returns the files applied by this call, in order
 * @throws `storage.schema_refused` when an applied file has changed or is missing, when a number is missing, when the database is newer than the
 * files, or when a file fails; `service.not_ready`, naming the session that held the lock for `lockTimeoutMs`, or when tables were locked for
 * `tablesTimeoutMs`
 */
export async function migrate(database: Database, folder: URL = new URL('./migrations/', import.meta.url), options: MigrateOptions = {}): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const applied: string[] = [];
  // The last pass finds nothing pending.
  for (let round = 0; round <= migrations.length; round += 1) {
    const name = await applyWithinTime(database, migrations, options);
    if (name === null) break;
    applied.push(name);
  }
  return applied;
}

/** @returns the file applied, or null when none is pending */
async function applyWithinTime(
  database: Database,
  migrations: readonly Migration[],
  { lockTimeoutMs = LOCK_TIMEOUT_MS, tablesTimeoutMs = TABLES_TIMEOUT_MS, statementTimeoutMs = STATEMENT_TIMEOUT_MS, onWait = () => {} }: MigrateOptions,
): Promise<string | null> {
  const onFile = (name: string) => onWait(`migration ${name} is being applied`);
  /** Counted from the first table lock timeout, without the wait for the advisory lock. */
  let untilMs: number | null = null;
  for (;;) {
    const waiting = watchLock(database, onWait);
    const applying = { lockTimeoutMs, statementTimeoutMs, onLocked: waiting.stop, onFile };
    const outcome = await database
      // The server bounds the wait for the lock; the client's timeout must not be shorter.
      .transaction((handle) => applyNext(handle, migrations, applying), { statementTimeoutMs: Math.max(lockTimeoutMs, statementTimeoutMs) })
      .catch((error: unknown) => {
        if (error instanceof LockTimeout) return error;
        throw error;
      })
      .finally(waiting.stop);
    if (!(outcome instanceof LockTimeout)) return outcome;
    if (outcome.file === null) throw await lockTimedOut(database, outcome, lockTimeoutMs);
    untilMs ??= Date.now() - TABLE_LOCK_TIMEOUT_MS + tablesTimeoutMs;
    if (Date.now() >= untilMs) {
      const message = `migration ${outcome.file} could not lock its tables within ${tablesTimeoutMs / 1_000} s`;
      throw new SwitchyardError('service.not_ready', message, { cause: outcome.cause });
    }
    await delay(TABLE_PAUSE_MS);
  }
}

function watchLock(database: Database, onWait: (reason: string) => void): { stop(): void } {
  let isOver = false;
  const report = async () => {
    const lockSession = await findLockSession(database);
    if (lockSession !== null && !isOver) onWait(`the schema is being migrated by ${describeSession(lockSession)}`);
  };
  // A failed look-up is not reported.
  const timer = setInterval(() => void report().catch(() => {}), REPORT_EVERY_MS);
  return {
    stop: () => {
      isOver = true;
      clearInterval(timer);
    },
  };
}

/** A lock timed out; nothing was changed. */
class LockTimeout extends Error {
  /** The file that waited for table locks; null for the advisory lock. */
  readonly file: string | null;

  constructor(file: string | null, cause: unknown) {
    super('a lock timed out', { cause });
    this.file = file;
  }
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const number = Number(FILE_NAME.exec(name)?.[1]);
    if (number !== migrations.length + 1) throw refused(`${name} is not number ${migrations.length + 1}: numbers run from 0001 without gaps`);
    // A checkout may have converted the line ends.
    const text = (await readFile(new URL(name, folder), 'utf8')).replaceAll('\r\n', '\n');
    migrations.push({ number, name, checksum: createHash('sha256').update(text).digest('hex'), text });
  }
  return migrations;
}

/** @returns the file applied, or null when none is pending @throws Busy */
async function applyNext(
  handle: Queryable,
  migrations: readonly Migration[],
  { lockTimeoutMs, statementTimeoutMs, onLocked, onFile }: Applying,
): Promise<string | null> {
  // Not supported on every platform of the server.
  await handle.query(
    `do $$ begin perform set_config('client_connection_check_interval', '${CONNECTION_CHECK_MS}ms', true); exception when others then null; end $$`,
  );
  await limitLocks(handle, lockTimeoutMs);
  // With equal limits the server would report the statement timeout, not the lock timeout.
  await limitStatements(handle, 0);
  await handle.query('select pg_advisory_xact_lock($1)', [LOCK_KEY]).catch(lockTimeoutOr(null));
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
  await handle.query(next.text).catch(lockTimeoutOr(next.name)).catch(failedOr(next.name));
  await handle.query('insert into schema_migrations (number, name, checksum) values ($1, $2, $3)', [next.number, next.name, next.checksum]);
  return next.name;
}

async function limitLocks(handle: Queryable, timeoutMs: number): Promise<void> {
  await handle.query("select set_config('lock_timeout', $1, true)", [`${timeoutMs}ms`]);
}

/** @param timeoutMs 0: no limit */
async function limitStatements(handle: Queryable, timeoutMs: number): Promise<void> {
  await handle.query("select set_config('statement_timeout', $1, true)", [`${timeoutMs}ms`]);
}

function lockTimeoutOr(file: string | null): (cause: unknown) => never {
  return (cause) => {
    throw isLockTimeout(cause) ? new LockTimeout(file, cause) : cause;
  };
}

/** A refused statement is the file's fault; a transient error is not. */
function failedOr(name: string): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof LockTimeout || isTransientError(cause)) throw cause;
    throw new SwitchyardError('storage.schema_refused', `migration ${name} failed, and nothing of it was kept`, { cause });
  };
}

async function lockTimedOut(database: Database, { cause }: LockTimeout, lockTimeoutMs: number): Promise<SwitchyardError> {
  const lockSession = await findLockSession(database);
  const name = lockSession === null ? 'another process' : describeSession(lockSession);
  return new SwitchyardError('service.not_ready', `${name} has been migrating the database for over ${lockTimeoutMs / 1_000} s`, {
    cause,
    details: { lockSession },
  });
}

interface LockSession {
  name: string;
  address: string | null;
  /** The backend's pid, as `pg_terminate_backend` takes it. */
  session: number;
}

function describeSession({ name, address, session }: LockSession): string {
  return `${name} (from ${address ?? 'this machine'}, session ${session})`;
}

/** The session that holds the advisory lock; null when none does. `pg_locks` shows the key in two halves. */
async function findLockSession(database: Database): Promise<LockSession | null> {
  const { rows } = await database.query<LockSession>(
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
