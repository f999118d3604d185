import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { evaluationStore } from './evaluation-store.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

it('keeps the first result of a hash, and replaces a failure', async () => {
  const store = evaluationStore(database);
  const row = { hash: 'h', kind: 'node' } as const;

  await store.store({ ...row, result: null });
  expect(await store.read(['h', 'unknown'])).toEqual(new Map([['h', { ...row, result: null }]]));
  expect(await store.withResult(['h', 'unknown'])).toEqual(new Set());
  await store.store({ ...row, result: { text: 'first\u0000' } });
  for (const result of [{ text: 'second' }, null]) await store.store({ ...row, result });

  expect(await store.read(['h'])).toEqual(new Map([['h', { ...row, result: { text: 'first\u0000' } }]]));
  expect(await store.withResult(['h', 'unknown'])).toEqual(new Set(['h']));
});
