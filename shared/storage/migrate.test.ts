import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { openPglite } from './pglite/open-pglite.ts';

const FIRST = { '0001-first.sql': 'create table first (a int); insert into first values (1);' };
const SECOND = { '0002-second.sql': 'create table second (b int);' };

describe('migrate', () => {
  let database: Database;
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'switchyard-migrate-'));
    database = await openPglite({ folder: null });
  });

  afterAll(async () => {
    await database?.close();
    await rm(root, { recursive: true, force: true });
  });

  beforeEach(async () => {
    await database.query('drop schema public cascade; create schema public');
  });

  afterEach(() => {
    vi.restoreAllMocks();
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

  it('counts the time for its tables from when it first misses them, whatever it waited for the lock before', async () => {
    const clock = Date.now;
    let aheadMs = 0;
    vi.spyOn(Date, 'now').mockImplementation(() => clock() + aheadMs);
    let tries = 0;
    const busyAtFirst = withStatements(database, (text) => {
      if (text.includes('pg_advisory_xact_lock')) aheadMs = 300_000;
      if (text !== FIRST['0001-first.sql']) return;
      tries += 1;
      if (tries === 1) throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
    });

    expect(await migrate(busyAtFirst, await folderOf(FIRST))).toEqual(['0001-first.sql']);
    expect(tries).toBe(2);
  });

  it('refuses a file that was changed after it had been applied', async () => {
    await migrate(database, await folderOf(FIRST));

    const changed = migrate(database, await folderOf({ '0001-first.sql': 'create table first (a bigint);', ...SECOND }));

    await expect(changed).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('0001-first.sql was changed') });
    expect(await tables()).toEqual(['first', 'schema_migrations']);
  });

  it('refuses a file that was renamed after it had been applied', async () => {
    await migrate(database, await folderOf(FIRST));

    const renamed = migrate(database, await folderOf({ '0001-other.sql': FIRST['0001-first.sql'] }));

    await expect(renamed).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('0001-other.sql') });
  });

  it('refuses a gap between the files', async () => {
    const gap = migrate(database, await folderOf({ ...FIRST, '0003-third.sql': 'select 1' }));

    await expect(gap).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('0003-third.sql') });
    expect(await tables()).toEqual([]);
  });

  it('refuses two files of one number', async () => {
    const twice = migrate(database, await folderOf({ ...FIRST, '0001-other.sql': 'select 1' }));

    await expect(twice).rejects.toMatchObject({ code: 'storage.schema_refused' });
  });

  it('refuses an SQL file whose name is no number and name', async () => {
    const odd = migrate(database, await folderOf({ ...FIRST, 'second.sql': 'select 1' }));

    await expect(odd).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('second.sql') });
  });

  it('DESIGN 10: a database that is newer than the program is refused', async () => {
    await migrate(database, await folderOf({ ...FIRST, ...SECOND }));

    const older = migrate(database, await folderOf(FIRST));

    await expect(older).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('newer than this program') });
  });

  it('refuses a database whose own list has a gap', async () => {
    const folder = await folderOf({ ...FIRST, ...SECOND });
    await migrate(database, folder);
    await database.query('delete from schema_migrations where number = 1');

    await expect(migrate(database, folder)).rejects.toMatchObject({ code: 'storage.schema_refused', message: expect.stringContaining('not number 1') });
  });

  it('stores nothing of a file that fails half-way, and everything of those before it', async () => {
    const failing = migrate(database, await folderOf({ ...FIRST, '0002-second.sql': 'create table second (b int); select no_such_column;' }));

    await expect(failing).rejects.toMatchObject({
      code: 'storage.schema_refused',
      message: expect.stringContaining('0002-second.sql'),
      cause: expect.objectContaining({ code: '42703' }),
    });
    expect(await tables()).toEqual(['first', 'schema_migrations']);
  });

  it('applies each file once, however many migrate at once', async () => {
    const folder = await folderOf({ ...FIRST, ...SECOND });

    const applied = await Promise.all([migrate(database, folder), migrate(database, folder), migrate(database, folder)]);

    expect(applied.flat().sort()).toEqual(['0001-first.sql', '0002-second.sql']);
    expect((await database.query('select a from first')).rows).toEqual([{ a: 1 }]);
  });

  it('applies only what is new, and ignores differences of line ends', async () => {
    await migrate(database, await folderOf({ '0001-first.sql': 'create table first (\n  a int\n);\n' }));

    const applied = await migrate(database, await folderOf({ '0001-first.sql': 'create table first (\r\n  a int\r\n);\r\n', ...SECOND }));

    expect(applied).toEqual(['0002-second.sql']);
  });

  it('applies the product’s own files by default', async () => {
    await migrate(database);

    expect(await tables()).toEqual(expect.arrayContaining(['events', 'parts', 'schema_migrations', 'seen', 'sessions']));
    expect(await migrate(database)).toEqual([]);
  });
});

/** The same database with a hook before each statement of its transactions. */
function withStatements(database: Database, onStatement: (text: string) => void): Database {
  return {
    query: (statement, parameters) => database.query(statement, parameters),
    transaction: (work, options) =>
      database.transaction(
        (handle) =>
          work({
            query: async (statement, parameters) => {
              onStatement(typeof statement === 'string' ? statement : statement.text);
              return handle.query(statement, parameters);
            },
          }),
        options,
      ),
    close: () => database.close(),
  };
}
