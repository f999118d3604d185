import type { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../database.ts';
import { pgliteDatabase } from './open-pglite.ts';
import { loadEmptyEngine } from './test-support/open-test-database.ts';

/** Loading a database, on a busy machine. */
const TIMEOUT_MS = 240_000;

let database: Database;
/** Calls of the engine since the last look. */
let calls = 0;

beforeAll(async () => {
  const engine = await loadEmptyEngine();
  database = pgliteDatabase(counted(engine));
  await database.query({ name: 'named', text: 'select $1::int as value' }, [0]);
}, TIMEOUT_MS);
afterAll(() => database?.close());

function counted(engine: PGlite): PGlite {
  const send = engine.execProtocolRawStream.bind(engine);
  engine.execProtocolRawStream = (...call) => {
    calls += 1;
    return send(...call);
  };
  return engine;
}

it.each([
  ['a text', 'select 1 as value'],
  ['a text with a parameter', 'select $1::int as value'],
  ['a named statement that is new', { name: 'new', text: 'select $1::int as value' }],
  ['a named statement that is prepared', { name: 'named', text: 'select $1::int as value' }],
])('sends all messages of %s to the engine in one call', async (_, statement) => {
  calls = 0;

  const { rows } = await database.query(statement, statement === 'select 1 as value' ? [] : [1]);

  expect(rows).toEqual([{ value: 1 }]);
  expect(calls).toBe(1);
});

it('begins a statement behind what the event loop has already to do, so that group commits get what arrives meanwhile', async () => {
  const order: string[] = [];
  const nextIteration = new Promise<void>((resolve) => {
    setImmediate(() => {
      order.push('what had waited');
      resolve();
    });
  });

  await Promise.all([nextIteration, database.query('select 1').then(() => order.push('reply'))]);

  expect(order).toEqual(['what had waited', 'reply']);
});

it('reads a reply that is larger than the buffers of the engine', async () => {
  const { rows } = await database.query<{ text: string }>("select repeat('ä', 100000) as text from generate_series(1, 20)");

  expect(rows).toHaveLength(20);
  expect(new Set(rows.map(({ text }) => text))).toEqual(new Set(['ä'.repeat(100_000)]));
});

it(
  'fails a statement whose engine was closed, and does not wait for it',
  async () => {
    const engine = await loadEmptyEngine();
    const other = pgliteDatabase(engine);
    await other.query('select 1');
    await engine.close();

    await expect(other.query('select 1')).rejects.toThrow();
  },
  TIMEOUT_MS,
);
