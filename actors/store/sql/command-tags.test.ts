import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openEmptyDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { readTagsRequiredFrom } from './command-tags.ts';

const MIGRATIONS = new URL('../../../shared/storage/migrations/', import.meta.url);
const DAY_MS = 24 * 3_600_000;

let database: Database;
let folder: string;
beforeEach(async () => {
  database = await openEmptyDatabase();
  folder = await mkdtemp(join(tmpdir(), 'switchyard-tags-'));
});
afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true });
});

it('requires tags on every command in a deployment that starts with them', async () => {
  await migrate(database);

  expect(await readTagsRequiredFrom(database)).toBe(0);
});

it('allows a day in a deployment in which hosts of an earlier release have run', async () => {
  const earlier = (await readdir(MIGRATIONS)).filter((name) => name.endsWith('.sql') && !name.includes('command-tags'));
  for (const name of earlier.slice(0, 2)) await cp(fileURLToPath(new URL(name, MIGRATIONS)), join(folder, name));
  await migrate(database, pathToFileURL(`${folder}/`));
  await database.query('insert into parts (p) values (0)');
  await migrate(database);
  const { rows } = await database.query<{ at: Date }>('select now() as at');
  const nowMs = rows[0]?.at.getTime() ?? 0;

  const requiredFromMs = await readTagsRequiredFrom(database);
  expect(requiredFromMs).toBeGreaterThan(nowMs + DAY_MS - 600_000);
  expect(requiredFromMs).toBeLessThanOrEqual(nowMs + DAY_MS);
});
