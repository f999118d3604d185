import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { silentLog } from '../../telemetry/log.ts';
import { type FreshDatabase, freshDatabase } from '../conformance/fresh-database.ts';
import type { Database } from '../database.ts';
import { migrate } from '../migrate.ts';
import { openPostgres } from './open-postgres.ts';

const FIRST = { '0001-first.sql': 'create table first (a int); insert into first values (1);' };

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url));

/** Migrates the database of its first argument by the folder of its second. */
const MIGRATOR = `
import { migrate } from './dist/shared/storage/migrate.js';
import { openPostgres } from './dist/shared/storage/postgres/open-postgres.js';
import { silentLog } from './dist/shared/telemetry/log.js';
await migrate(await openPostgres({ url: process.argv[1], applicationName: 'gone', log: silentLog }), new URL(process.argv[2]));`;

const PAUSED_SESSIONS = "from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";

/** Sessions that wait for a table lock in this database. */
const IN_LINE =
  "from pg_locks where not granted and mode = 'AccessExclusiveLock' and database = (select oid from pg_database where datname = current_database())";

/** The machine may be busy. */
const POLL = { timeout: 60_000 };

describe('migrate on a PostgreSQL server', () => {
  let fresh: FreshDatabase;
  let root: string;
  let database: Database;
  let other: Database;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'switchyard-migrate-'));
    fresh = await freshDatabase(inject('postgresUrl'));
    // Shorter than the migrations take: they must not depend on it.
    database = await openPostgres({ url: fresh.url, applicationName: 'this process', log: silentLog, statementTimeoutMs: 1_000 });
    other = await openPostgres({ url: fresh.url, applicationName: 'the other process', log: silentLog, statementTimeoutMs: 1_000 });
  });
  afterEach(async () => {
    await Promise.all([database?.close(), other?.close()]);
    await fresh?.drop();
    await rm(root, { recursive: true, force: true });
  });

  async function folderOf(files: Record<string, string>): Promise<URL> {
    const folder = await mkdtemp(join(root, 'files-'));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    return pathToFileURL(`${folder}/`);
  }

  async function tables(): Promise<string[]> {
    const { rows } = await database.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public' order by 1");
    return rows.map(({ name }) => name);
  }

  /** Resolves once a migration is inside pg_sleep. */
  async function someoneMigrates(): Promise<void> {
    await expect.poll(async () => (await database.query(`select 1 ${PAUSED_SESSIONS}`)).rowCount, POLL).toBe(1);
  }

  it('DESIGN 10: the wait for another process that migrates is bounded, and names that process', async () => {
    const slow = migrate(other, await folderOf({ '0001-first.sql': 'select pg_sleep(3); create table first (a int);' }));
    await someoneMigrates();

    const impatient = migrate(database, await folderOf(FIRST), { lockTimeoutMs: 200 });

    await expect(impatient).rejects.toMatchObject({
      code: 'service.not_ready',
      message: expect.stringMatching(/^the other process \(from 127\.0\.0\.1, session \d+\) has been migrating the database for over 0\.2 s$/),
    });
    expect(await slow).toEqual(['0001-first.sql']);
  });

  it('waits for another process beyond the limits of an ordinary statement, names the session, and finds nothing left to do', async () => {
    const folder = await folderOf({ '0001-first.sql': 'select pg_sleep(4); create table first (a int);' });
    const slow = migrate(other, folder);
    await someoneMigrates();
    const reasons: string[] = [];

    expect(await migrate(database, folder, { onWait: (reason) => reasons.push(reason) })).toEqual([]);
    expect(await slow).toEqual(['0001-first.sql']);
    expect(reasons[0]).toMatch(/^the schema is being migrated by the other process \(from 127\.0\.0\.1, session \d+\)$/);
  });

  it('names the session that holds the lock, too, where the wait for it may be as long as a statement', async () => {
    const slow = migrate(other, await folderOf({ '0001-first.sql': 'select pg_sleep(3); create table first (a int);' }));
    await someoneMigrates();

    const impatient = migrate(database, await folderOf(FIRST), { lockTimeoutMs: 300, statementTimeoutMs: 300 });

    await expect(impatient).rejects.toMatchObject({ code: 'service.not_ready', message: expect.stringMatching(/^the other process \(/) });
    expect(await slow).toEqual(['0001-first.sql']);
  });

  it('reports its own migration as being applied, and no longer the session that it waited for', async () => {
    const failing = expect(migrate(other, await folderOf({ '0001-first.sql': 'select pg_sleep(4); select no_such_column;' }))).rejects.toThrow();
    await someoneMigrates();
    const reasons: string[] = [];

    await migrate(database, await folderOf(FIRST), { onWait: (reason) => reasons.push(reason) });

    await failing;
    expect(reasons[0]).toContain('the other process');
    expect(reasons.at(-1)).toBe('migration 0001-first.sql is being applied');
  });

  it('does not wait for the statement of a process that is gone: the server ends it', async () => {
    const endless = await folderOf({ '0001-first.sql': 'select pg_sleep(600);' });
    const program = spawn(process.execPath, ['--input-type=module', '-e', MIGRATOR, fresh.url, endless.href], { cwd: REPOSITORY, stdio: 'ignore' });
    await someoneMigrates();
    program.kill('SIGKILL');

    expect(await migrate(database, await folderOf(FIRST), { lockTimeoutMs: 60_000 })).toEqual(['0001-first.sql']);
  });

  it('releases its lock request for a table in use, so that other sessions go on, and retries when they are done', async () => {
    await migrate(database, await folderOf(FIRST));
    const folder = await folderOf({ ...FIRST, '0002-second.sql': 'alter table first add column b int;' });
    const [locked, released] = [signal(), signal()];
    // Far above the second that a migration waits for a lock, far below the minute that it would wait without stepping back.
    const bystander = await openPostgres({ url: fresh.url, applicationName: 'a bystander', log: silentLog, statementTimeoutMs: 10_000 });
    const reader = other.transaction(async (handle) => {
      await handle.query('select a from first');
      locked.give();
      await released.given;
    });
    await locked.given;

    try {
      const impatient = migrate(database, folder, { tablesTimeoutMs: 100 });
      await expect(impatient).rejects.toMatchObject({ code: 'service.not_ready', message: expect.stringContaining('0002-second.sql') });
      const patient = expect(migrate(database, folder)).resolves.toEqual(['0002-second.sql']);
      // It waits for the table lock now; statements behind it must not time out.
      await expect.poll(async () => (await bystander.query(`select 1 ${IN_LINE}`)).rowCount, POLL).toBe(1);
      expect((await bystander.query('select a from first')).rows).toEqual([{ a: 1 }]);
      released.give();
      await reader;

      await patient;
    } finally {
      released.give();
      await bystander.close();
    }
  });

  it('stores nothing of a file that fails, and applies the corrected file afterwards', async () => {
    const broken = { ...FIRST, '0002-second.sql': 'create table second (b int); insert into second values (1); select no_such_column;' };

    await expect(migrate(database, await folderOf(broken))).rejects.toMatchObject({
      code: 'storage.schema_refused',
      message: expect.stringContaining('0002-second.sql'),
      cause: expect.objectContaining({ code: '42703' }),
    });
    expect(await tables()).toEqual(['first', 'schema_migrations']);

    expect(await migrate(database, await folderOf({ ...FIRST, '0002-second.sql': 'create table second (b int);' }))).toEqual(['0002-second.sql']);
  });

  it('does not blame a file for a connection that was lost under it, and applies it the next time', async () => {
    const folder = await folderOf({ '0001-first.sql': 'create table first (a int); select pg_sleep(30);' });
    const cut = expect(migrate(other, folder)).rejects.toMatchObject({ code: '57P01' });
    await someoneMigrates();

    await database.query(`select pg_terminate_backend(pid) ${PAUSED_SESSIONS}`);

    await cut;
    expect(await tables()).toEqual([]);
    expect(await migrate(database, await folderOf(FIRST))).toEqual(['0001-first.sql']);
  });

  it('refuses a changed past, and a database that is newer than the program, naming the file', async () => {
    await migrate(database, await folderOf({ ...FIRST, '0002-second.sql': 'create table second (b int);' }));

    await expect(migrate(other, await folderOf({ ...FIRST, '0002-second.sql': 'create table second (b bigint);' }))).rejects.toMatchObject({
      code: 'storage.schema_refused',
      message: expect.stringContaining('0002-second.sql was changed'),
    });
    await expect(migrate(other, await folderOf(FIRST))).rejects.toMatchObject({
      code: 'storage.schema_refused',
      message: expect.stringMatching(/newer than this program.*0002-second\.sql/),
    });
    expect(await tables()).toEqual(['first', 'schema_migrations', 'second']);
  });

  it('applies the product’s own files', async () => {
    const applied = await migrate(database);

    expect(applied[0]).toBe('0001-runtime.sql');
    expect(await migrate(other)).toEqual([]);
  });
});

function signal(): { given: Promise<void>; give(): void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}
