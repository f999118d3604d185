import { spawn } from 'node:child_process';
import { access, cp, mkdir, mkdtemp, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { databaseConformance } from '../conformance.ts';
import { openPglite, pgliteDatabase } from './open-pglite.ts';
import { loadEmptyEngine, openEmptyDatabase } from './test-support/open-test-database.ts';

/** Creating a database takes seconds, more on a busy machine. */
const TIMEOUT_MS = 240_000;

databaseConformance('pglite', async () => {
  const database = await openEmptyDatabase();
  return { database, close: () => database.close() };
});

it(
  'DESIGN 3: the embedded database refuses what would wait behind too many others, and takes more once they are done',
  async () => {
    const database = pgliteDatabase(await loadEmptyEngine(), { maxInFlight: 2 });

    const answers = await Promise.allSettled([1, 2, 3].map((value) => database.query('select $1::int as value', [value])));

    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(answers[2]).toMatchObject({ reason: { code: 'service.not_ready' } });
    expect((await database.query('select 4 as value')).rows).toEqual([{ value: 4 }]);
    await database.close();
  },
  TIMEOUT_MS,
);

describe('a PGlite folder', () => {
  let root: string;
  /** A copy of one that was made and closed: making a database takes seconds of CPU, and only some of the cases look at that. */
  const madeFolder = async (name: string) => {
    const folder = join(root, name, 'database');
    await cp(join(root, 'made'), join(root, name), { recursive: true });
    return folder;
  };

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'switchyard-pglite-'));
    await (await openPglite({ folder: join(root, 'made', 'database') })).close();
  }, TIMEOUT_MS);
  afterAll(() => rm(root, { recursive: true, force: true }));

  it('is refused when it holds other files and no database, and they stay as they are', async () => {
    const folder = join(root, 'documents');
    await mkdir(folder);
    await writeFile(join(folder, 'letter.txt'), 'dear reader');

    await expect(openPglite({ folder })).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining(folder) });
    expect(await readdir(folder)).toEqual(['letter.txt']);
  });

  it('is refused when it can not be made', async () => {
    await writeFile(join(root, 'file'), '');

    await expect(openPglite({ folder: join(root, 'file', 'database') })).rejects.toMatchObject({ code: 'config.invalid' });
  });

  it(
    'is made anew when the process that made it died before it was done',
    async () => {
      const folder = join(root, 'half-made');
      await mkdir(folder);
      await writeFile(join(folder, 'PG_VERSION'), '18\n');
      await writeFile(`${folder}.unfinished`, '');

      const database = await openPglite({ folder });

      expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      await database.close();
      await expect(access(`${folder}.unfinished`)).rejects.toThrow();
    },
    TIMEOUT_MS,
  );

  it(
    'is refused once its database is gone, instead of creating a new one, until that is allowed',
    async () => {
      const folder = await madeFolder('lost');
      await rm(folder, { recursive: true });

      await expect(openPglite({ folder })).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining(folder) });
      await mkdir(folder);
      await expect(openPglite({ folder })).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('restore') });
      expect(await readdir(folder)).toEqual([]);
      await rm(`${folder}.made`);
      await (await openPglite({ folder })).close();
    },
    TIMEOUT_MS,
  );

  it(
    'is refused when a table in it was truncated, which would show only when its rows are read',
    async () => {
      const folder = await madeFolder('cut-off');
      const first = await openPglite({ folder });
      await first.query('create table kept (id bigint primary key, body text)');
      await first.query("insert into kept select id, 'text' from generate_series(1, 10) as id");
      const { rows } = await first.query<{ path: string }>("select pg_relation_filepath('kept') as path");
      await first.close();
      await truncate(join(folder, rows[0]?.path ?? ''), 0);

      await expect(openPglite({ folder })).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringMatching(/damaged.*restore/) });
    },
    TIMEOUT_MS,
  );

  it(
    'holds after a close what was written before it, and leaves the exit code alone',
    async () => {
      const folder = await madeFolder('closed');
      const exitCode = process.exitCode;
      const first = await openPglite({ folder });
      await first.query('create table kept (id bigint, body json)');
      await first.query('insert into kept select id, $1::json from generate_series(1, 1000) as id', [{ a: 'b' }]);
      await first.close();

      const second = await openPglite({ folder });
      const { rows } = await second.query('select count(*), sum(id)::bigint from kept');
      await second.close();

      expect(rows).toEqual([{ count: 1_000, sum: 500_500 }]);
      expect(process.exitCode).toBe(exitCode);
    },
    TIMEOUT_MS,
  );

  it(
    'holds every acknowledged write after its process was killed',
    async () => {
      const folder = join(root, 'killed');
      const program = await compileWriter(join(root, 'program'));

      const acknowledged = await runUntilKilled(program, folder, 500);

      const database = await openPglite({ folder });
      const { rows } = await database.query<{ id: number }>('select id from acknowledged order by id');
      await database.close();
      expect(acknowledged.length).toBeGreaterThanOrEqual(500);
      // One more may have been written without being acknowledged yet.
      expect(rows.map(({ id }) => id).slice(0, acknowledged.length)).toEqual(acknowledged);
      expect(rows.length - acknowledged.length).toBeLessThanOrEqual(1);
    },
    2 * TIMEOUT_MS,
  );
});

/** Writes rows without end and prints each id once it is acknowledged. */
const WRITER = `
import { writeSync } from 'node:fs';
import { openPglite } from './out/shared/storage/pglite/open-pglite.js';
const database = await openPglite({ folder: process.argv[2] });
await database.query('create table acknowledged (id int primary key)');
for (let id = 1; ; id += 1) {
  await database.query('insert into acknowledged values ($1)', [id]);
  writeSync(1, id + '\\n');
}`;

/** A child process can't run the sources, so the driver is compiled as in the build, into a folder where our packages resolve. */
async function compileWriter(folder: string): Promise<string> {
  const repository = fileURLToPath(new URL('../../../', import.meta.url));
  await mkdir(folder);
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const config = {
    extends: join(repository, 'tsconfig.build.json'),
    compilerOptions: { rootDir: repository, outDir: join(folder, 'out'), noCheck: true },
    include: [],
    files: [fileURLToPath(new URL('./open-pglite.ts', import.meta.url))],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const compiler = join(createRequire(import.meta.url).resolve('typescript/package.json'), '..', 'bin', 'tsc');
  const compiling = spawn(process.execPath, [compiler, '-p', folder], { stdio: 'inherit' });
  const code = await new Promise((resolve) => {
    compiling.once('exit', resolve);
  });
  if (code !== 0) throw new Error(`the compiler ended with ${String(code)}`);
  await writeFile(join(folder, 'writer.mjs'), WRITER);
  return join(folder, 'writer.mjs');
}

/** Kills the program once it has printed that many ids. @returns all ids that it printed */
async function runUntilKilled(program: string, folder: string, count: number): Promise<number[]> {
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  let lines = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    lines += text.split('\n').length - 1;
    if (lines >= count) child.kill('SIGKILL');
  });
  const signal = await new Promise((resolve) => {
    child.once('close', (_code, by) => resolve(by));
  });
  if (signal !== 'SIGKILL') throw new Error('the program ended by itself');
  return printed.slice(0, printed.lastIndexOf('\n')).split('\n').map(Number);
}
