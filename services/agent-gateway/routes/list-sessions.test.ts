import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { sessionOfRun } from '#shared/contracts/agent/session.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(async () => {
  await deployment.closeApps();
  await deployment.database.query('delete from session_labels');
  await deployment.database.query('delete from sessions');
});
afterAll(() => deployment.close());

const app = () => deployment.app();

/** Sessions in order of creation; those of a pair at one instant. */
async function stored(...sessions: readonly { customer: string; labels?: string[] }[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, { customer, labels = [] }] of sessions.entries()) {
    await send(app(), 'POST', '/customers', { id: customer, name: 'Ada' });
    const { id } = (await send(app(), 'POST', '/sessions', { customer_id: customer, labels })).json();
    const at = new Date(Date.parse('2030-01-01T00:00:00Z') + Math.floor(index / 2) * 1_000);
    await deployment.database.query('update sessions set created_at = $2 where id = $1', [id, at]);
    await deployment.database.query('update session_labels set created_at = $2 where session_id = $1', [id, at]);
    ids.push(id);
  }
  return ids;
}

async function pages(query: string): Promise<string[][]> {
  const found: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const reply = await send(app(), 'GET', `/sessions?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    expect(reply.statusCode).toBe(200);
    const { items, has_more: hasMore, next_cursor: next } = reply.json();
    expect(hasMore).toBe(next !== null);
    // A cursor that does not advance would never end.
    expect(found.length).toBeLessThan(300);
    found.push(items.map(({ id }: { id: string }) => id));
    cursor = next;
  }
  return found;
}

it('DESIGN 9: a list has each session once, newest first or oldest first, also those of one instant', async () => {
  const ids = await stored(...Array.from({ length: 5 }, () => ({ customer: 'ada' })));

  for (const limit of [1, 2, 3, 5, 200]) {
    expect((await pages(`limit=${limit}`)).flat()).toEqual([...ids].reverse());
    expect((await pages(`limit=${limit}&sort=asc`)).flat()).toEqual(ids);
  }
  expect((await pages('limit=2')).map((page) => page.length)).toEqual([2, 2, 1]);
});

it('returns the sessions of a customer, with a label, or both', async () => {
  const [one, two, three, four] = await stored(
    { customer: 'ada', labels: ['vip', 'eu'] },
    { customer: 'ada' },
    { customer: 'bea', labels: ['vip'] },
    { customer: 'ada', labels: ['eu'] },
  );

  for (const [query, expected] of [
    ['customer_id=ada', [four, two, one]],
    ['label=vip', [three, one]],
    ['customer_id=ada&label=vip', [one]],
    ['customer_id=ada&label=eu', [four, one]],
    ['customer_id=unknown', []],
    ['label=', []],
  ] as const) {
    const list = (await send(app(), 'GET', `/sessions?${query}`)).json();
    expect([query, list.items.map(({ id }: { id: string }) => id), list.total_count, list.total_count_is_exact]).toEqual([
      query,
      expected,
      expected.length,
      true,
    ]);
    expect((await pages(`${query}&limit=1&sort=asc`)).flat()).toEqual([...expected].reverse());
  }
});

it('returns records as GET of a session does, and none that is deleted', async () => {
  const [one, two] = await stored({ customer: 'ada', labels: ['vip'] }, { customer: 'ada', labels: ['vip'] });
  await send(app(), 'DELETE', `/sessions/${one}`);

  for (const query of ['', 'customer_id=ada', 'label=vip']) {
    const reply = await send(app(), 'GET', `/sessions?${query}`);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    const items = [(await send(app(), 'GET', `/sessions/${two}`)).json()];
    expect(reply.json()).toEqual({ items, total_count: 1, total_count_is_exact: true, has_more: false, next_cursor: null });
  }
});

it('ends a page with the session that exceeds 4 MiB, and goes on behind it', async () => {
  const ids = await stored(...Array.from({ length: 5 }, () => ({ customer: 'ada' })));
  await deployment.database.query(`update sessions set record = (record::jsonb || jsonb_build_object('title', $1::text))::json`, ['x'.repeat(1_500_000)]);

  const sizes: number[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const list: { items: unknown[]; next_cursor: string | null } = (
      await send(app(), 'GET', `/sessions?limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`)
    ).json();
    sizes.push(list.items.length);
    cursor = list.next_cursor;
  }
  expect([sizes, ids.length]).toEqual([[3, 2], 5]);
});

it('counts no more sessions than its limit, and says so', async () => {
  await deployment.database.query(
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, customer_id)
     select 'many' || n, 0, 0, 1, '{}', $1::json, now(), now(), 'many' from generate_series(1, 1001) as n`,
    [JSON.stringify(sessionOfRun({ id: 'many', customerId: 'many', agentId: 'agent-1', at: '2030-01-01T00:00:00.000Z' }))],
  );

  expect((await send(app(), 'GET', '/sessions?limit=1')).json()).toMatchObject({ total_count: 1_000, total_count_is_exact: false, has_more: true });
  await deployment.database.query(`delete from sessions where id in ('many1', 'many2')`);
  expect((await send(app(), 'GET', '/sessions?limit=1')).json()).toMatchObject({ total_count: 999, total_count_is_exact: true });
});

const corpus = new URL('../../../tests/corpus/agent/invalid/list-sessions.json', import.meta.url);
const invalid = z
  .array(z.object({ case: z.string(), path: z.string(), request: z.record(z.string(), z.union([z.string(), z.array(z.string())])) }))
  .parse(JSON.parse(readFileSync(corpus, 'utf8')));

it.each(invalid)('refuses $case', async ({ path, request }) => {
  const query = Object.entries(request).flatMap(([name, values]) => [values].flat().map((value) => `${name}=${encodeURIComponent(value)}`));

  const reply = await send(app(), 'GET', `/sessions?${query.join('&')}`);

  expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: `/${path}` }]);
});

it.each([
  ['a text that is no cursor', 'abc'],
  ['a cursor of customers', Buffer.from('customers 1700000000000 a').toString('base64url')],
  ['a cursor of runs', Buffer.from('1700000000000000 run_1').toString('base64url')],
  ['a cursor with NUL', Buffer.from('sessions 1700000000000 a\u0000').toString('base64url')],
])('refuses %s', async (_case, cursor) => {
  const reply = await send(app(), 'GET', `/sessions?cursor=${cursor}`);

  expect([reply.statusCode, reply.json()]).toMatchObject([400, { path: '/cursor' }]);
});
