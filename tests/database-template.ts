import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type { TestProject } from 'vitest/node';
import { migrate } from '../shared/storage/migrate.ts';
import { pgliteDatabase } from '../shared/storage/pglite/open-pglite.ts';
import '../shared/storage/pglite/test-support/open-test-database.ts';
import { CACHE, digestOf, exists, filesOf } from './helpers/template-files.ts';

/** The inputs of a template: a change of any of these needs another template. */
const MADE_FROM = ['shared/storage/migrations', 'shared/storage/migrate.ts', 'node_modules/@electric-sql/pglite/package.json'];

interface Templates {
  empty: string;
  migrated: string;
}

/** Once per run, before the first test that needs an embedded database: dumps an empty and a migrated one, or uses the files of an earlier run. */
export default async function setup(project: TestProject): Promise<void> {
  const digest = await digestOf(MADE_FROM);
  const templates = { empty: join(CACHE, `${digest}-empty.tar`), migrated: join(CACHE, `${digest}.tar`) };
  if (!(await exists(templates.empty)) || !(await exists(templates.migrated))) await makeTemplates(templates);
  project.provide('databaseTemplate', templates.migrated);
  project.provide('emptyDatabaseTemplate', templates.empty);
}

async function makeTemplates({ empty, migrated }: Templates): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const pglite = await PGlite.create();
  const database = pgliteDatabase(pglite);
  await dump(pglite, empty);
  await migrate(database);
  await dump(pglite, migrated);
  await database.close();
  const outdated = (await filesOf(CACHE)).filter((file) => file.endsWith('.tar') && file !== empty && file !== migrated);
  await Promise.all(outdated.map((file) => rm(file, { force: true })));
}

/** Renamed into place when it is complete: two runs may make it at the same time. */
async function dump(pglite: PGlite, path: string): Promise<void> {
  const folder = await pglite.dumpDataDir('none');
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, Buffer.from(await folder.arrayBuffer()));
  await rename(unfinished, path);
}
