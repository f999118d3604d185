import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { send } from '../test-support/api.ts';
import { customerCases } from '../test-support/customer-cases.ts';
import { newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

customerCases(() => deployment);

const corpus = new URL('../../../tests/corpus/agent/', import.meta.url);

function casesOf(name: string) {
  const file = z.array(z.object({ case: z.string(), path: z.string(), request: z.unknown() })).min(1);
  return file.parse(JSON.parse(readFileSync(new URL(`invalid/${name}.json`, corpus), 'utf8')));
}

const pointer = (path: string) => (path === '' ? '' : `/${path.replaceAll('.', '/')}`);

describe('a request that is not valid', () => {
  it.each(casesOf('create-customer'))('is refused at creation: $case', async ({ path, request }) => {
    const reply = await send(deployment.app(), 'POST', '/customers', request);

    expect([reply.statusCode, reply.json()]).toEqual([400, { error: expect.any(String), code: 'validation_failed', path: pointer(path) }]);
  });

  it.each(casesOf('patch-customer'))('is refused as a change: $case', async ({ path, request }) => {
    await send(deployment.app(), 'POST', '/customers', { id: 'patched', name: 'Ada' });

    const reply = await send(deployment.app(), 'PATCH', '/customers/patched', request);

    expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: pointer(path) }]);
  });

  it('names the limits of tags and metadata, at creation and as a sum of changes', async () => {
    const app = deployment.app();
    const tags = (count: number, prefix = 't') => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    await send(app, 'POST', '/customers', { id: 'full', name: 'Ada', tags: tags(100), metadata: { text: 'x'.repeat(65_000) } });

    const refused = [
      [await send(app, 'POST', '/customers', { name: 'Ada', tags: tags(10_000) }), '/tags', 'tags must have at most 100 entries'],
      [
        await send(app, 'POST', '/customers', { name: 'Ada', metadata: { text: 'x'.repeat(65_536) } }),
        '/metadata',
        'metadata must have at most 64 KiB as JSON',
      ],
      [await send(app, 'POST', '/customers', { name: 'x'.repeat(1_000_000) }), '/name', 'name must have 1 to 500 characters, none of them a control character'],
      [
        await send(app, 'PATCH', '/customers/full', { tags: { add: ['one more'] } }),
        '/tags/add',
        'tags.add must not exceed the limit: a customer has at most 100 tags',
      ],
      [
        await send(app, 'PATCH', '/customers/full', { metadata: { set: { more: 'x'.repeat(1_000) } } }),
        '/metadata/set',
        'metadata.set must not exceed the limit: a customer has at most 64 KiB of metadata',
      ],
    ] as const;

    for (const [reply, path, error] of refused) expect([reply.statusCode, reply.json()]).toEqual([400, { error, code: 'validation_failed', path }]);
    const swapped = await send(app, 'PATCH', '/customers/full', { tags: { add: ['one more'], remove: ['t0'] }, metadata: { unset: ['text'] } });
    expect([swapped.statusCode, swapped.json().tags.length, swapped.json().metadata]).toEqual([200, 100, {}]);
  });

  it('is refused when it would set a prototype, and when its key is too long', async () => {
    const app = deployment.app();
    const headers = { authorization: 'Bearer sk-test-agent', 'content-type': 'application/json' };

    const prototype = await app.inject({ method: 'POST', url: '/customers', headers, payload: '{"name":"Ada","metadata":{"__proto__":{"a":1}}}' });
    const key = await send(app, 'POST', '/customers', { name: 'Ada' }, 'k'.repeat(257));

    expect([prototype.statusCode, prototype.json()]).toMatchObject([
      400,
      { error: expect.stringContaining('a key that would set a prototype'), code: 'validation_failed' },
    ]);
    expect([key.statusCode, key.json()]).toMatchObject([400, { path: '/idempotency-key' }]);
  });

  it.each([
    ['an unknown limit', 'limit=0', '/limit'],
    ['a text that is no cursor', 'cursor=abc', '/cursor'],
    ['a cursor of another list', `cursor=${Buffer.from('1700000000000000 run_1').toString('base64url')}`, '/cursor'],
    ['a cursor with NUL', `cursor=${Buffer.from('customers 1700000000000 a\u0000').toString('base64url')}`, '/cursor'],
    ['a deletion that is neither with nor without its sessions', null, '/cascade'],
  ])('is refused in a query: %s', async (_case, query, path) => {
    await send(deployment.app(), 'POST', '/customers', { id: 'queried', name: 'Ada' });
    const [method, url] = query === null ? (['DELETE', '/customers/queried?cascade=perhaps'] as const) : (['GET', `/customers?${query}`] as const);

    const reply = await send(deployment.app(), method, url);

    expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path }]);
  });
});

describe('an address of a customer', () => {
  it.each(['unknown', 'a%00b', '%20'.repeat(129), 'DEFAULT', 'tag:vip', 'x'.repeat(129)])('is not found: %s', async (id) => {
    for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { name: 'Ada' }], ['PATCH', { name: 7 }]] as const) {
      const reply = await send(deployment.app(), method, `/customers/${id}`, body);
      expect([reply.statusCode, reply.json().code]).toEqual([404, 'not_found']);
    }
  });

  it.each(['a.b', 'ada@example.com', 'a b', 'a/b', '100%', 'zoë-😀', '😀'.repeat(64), 'x'.repeat(128)])('is found by its encoded id: %s', async (id) => {
    await send(deployment.app(), 'POST', '/customers', { id, name: 'Ada' });

    expect((await send(deployment.app(), 'GET', `/customers/${encodeURIComponent(id)}`)).json()).toMatchObject({ id });
  });
});

describe('a deletion with sessions', () => {
  const many = limits.sessionsPerCascadeStep + 5;

  async function customerWithSessions(id: string, count: number): Promise<void> {
    const app = deployment.app();
    await send(app, 'POST', '/customers', { id, name: 'Ada' });
    const sessions = await Promise.all(Array.from({ length: count }, () => newSession(app)));
    await deployment.database.query('update sessions set customer_id = $2 where id = any($1::text[])', [sessions, id]);
  }

  it('deletes more of them than in one step', async () => {
    await customerWithSessions('with many', many);

    expect((await send(deployment.app(), 'DELETE', '/customers/with%20many?cascade=true')).statusCode).toBe(204);
    const { rows } = await deployment.database.query<{ count: number }>(
      `select count(*)::int as count from sessions where customer_id = 'with many' and deleted_at is null`,
    );
    expect(rows).toEqual([{ count: 0 }]);
  });

  it('answers 503 when their owner does not reply, and goes on when it is sent again', async () => {
    await customerWithSessions('waiting', 3);
    const release = deployment.owner.hold();

    const reply = await send(deployment.app({ waits: { silenceMs: 10, replyMs: 50 } }), 'DELETE', '/customers/waiting?cascade=true');
    release();

    expect([reply.statusCode, reply.json().code]).toEqual([503, 'not_ready']);
    expect((await send(deployment.app(), 'DELETE', '/customers/waiting?cascade=true')).statusCode).toBe(204);
  });

  it('answers 503 when there are more of them than can be deleted in its time', async () => {
    await customerWithSessions('too many', 3);

    const reply = await send(deployment.app({ waits: { cascadeMs: -1 } }), 'DELETE', '/customers/too%20many?cascade=true');

    expect([reply.statusCode, reply.json()]).toMatchObject([503, { code: 'not_ready' }]);
    expect((await send(deployment.app(), 'GET', '/customers/too%20many')).statusCode).toBe(200);
  });
});
