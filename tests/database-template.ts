import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import type { TestProject } from 'vitest/node';
import { migrate } from '../shared/storage/migrate.ts';
import { pgliteDatabase } from '../shared/storage/pglite/open-pglite.ts';
import '../shared/storage/pglite/test-support/open-test-database.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const CACHE = join(root, 'node_modules/.cache/switchyard-tests');
/** The inputs of a template: a change of any of these needs another template. */
const MADE_FROM = ['shared/storage/migrations', 'shared/storage/migrate.ts', 'node_modules/@electric-sql/pglite/package.json'];

/** Once per run, before the first test that needs an embedded database: dumps a migrated one to a file, or uses the file of an earlier run. */
export default async function setup(project: TestProject): Promise<void> {
  const path = join(CACHE, `${await digestOf(MADE_FROM)}.tar`);
  if (!(await exists(path))) await makeTemplate(path);
  project.provide('databaseTemplate', path);
}

/** Renamed into place when it is complete: two runs may make it at the same time. */
async function makeTemplate(path: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const pglite = await PGlite.create();
  const database = pgliteDatabase(pglite);
  await migrate(database);
  const dump = await pglite.dumpDataDir('none');
  await database.close();
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, Buffer.from(await dump.arrayBuffer()));
  await rename(unfinished, path);
  const outdated = (await filesOf(CACHE)).filter((file) => file.endsWith('.tar') && file !== path);
  await Promise.all(outdated.map((file) => rm(file, { force: true })));
}

async function digestOf(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of paths) for (const file of await filesOf(join(root, path))) hash.update(file.slice(root.length)).update(await readFile(file));
  return hash.digest('hex').slice(0, 32);
}

async function filesOf(path: string): Promise<string[]> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOTDIR' ? null : Promise.reject(error)));
  return names === null ? [path] : names.sort().map((name) => join(path, name));
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
