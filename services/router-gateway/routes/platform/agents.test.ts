import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { AgentRows } from '#shared/config/agent-rows.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { KEY, openTestApp, type TestApp } from '../../test-support/harness.ts';

const platformKeys = { publicKey: 'pk-test', secretKey: 'sk-test' };
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`;
const shop = { id: 'shop', name: 'Shop', version: '7', url: 'https://shop.example/agent' };

let database: Database;
let bus: Bus;
let opened: TestApp;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  opened = openTestApp(bus, { database, platformKeys });
});
afterAll(async () => {
  await opened.close();
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  await database.query('truncate agents');
});

function send(method: 'GET' | 'PUT', path: string, payload?: object, authorization = basic('pk-test:sk-test')) {
  return opened.app.inject({ method, url: `/api/v1/platform/agents${path}`, headers: { authorization }, ...(payload && { payload }) });
}

const age = (id: string, interval: string) => database.query(`update agents set renewed_at = now() - interval '${interval}' where id = $1`, [id]);

describe('agents of a platform', () => {
  it('DESIGN 10: are listed once they have registered, and a renewal changes where they are', async () => {
    const first = await send('PUT', '/shop', shop);
    const renewed = await send('PUT', '/shop', { ...shop, version: '8', url: 'http://10.0.0.1:8080' });

    expect([first.statusCode, renewed.statusCode]).toEqual([201, 200]);
    expect(first.json()).toEqual({ ...shop, is_live: true, registered_at: expect.stringMatching(/Z$/), renewed_at: first.json().registered_at });
    expect((await send('GET', '')).json()).toEqual({ items: [renewed.json()], has_more: false, next_cursor: null });
    expect(renewed.json()).toMatchObject({ version: '8', url: 'http://10.0.0.1:8080', registered_at: first.json().registered_at });
    expect((await send('GET', '/shop')).json()).toEqual(renewed.json());
  });

  it('are not live three minutes after their last renewal, and gone after a day', async () => {
    for (const id of ['late', 'lost', 'shop']) await send('PUT', `/${id}`, { ...shop, id });
    await age('late', '181 seconds');
    await age('lost', '25 hours');
    const isLive = async () => (await send('GET', '')).json().items.map((agent: { id: string; is_live: boolean }) => [agent.id, agent.is_live]);

    expect(await isLive()).toEqual([
      ['late', false],
      ['lost', false],
      ['shop', true],
    ]);
    await send('PUT', '/late', { ...shop, id: 'late' });
    expect(await isLive()).toEqual([
      ['late', true],
      ['shop', true],
    ]);
  });

  it('are listed by id, in pages', async () => {
    for (const id of ['c', 'a', 'b']) await send('PUT', `/${id}`, { ...shop, id });
    const first = (await send('GET', '?limit=2')).json();
    const last = (await send('GET', `?limit=2&cursor=${first.next_cursor}`)).json();

    expect([first.items.length, first.has_more, first.next_cursor]).toEqual([2, true, 'b']);
    expect([last.items[0].id, last.has_more, last.next_cursor]).toEqual(['c', false, null]);
  });

  it('are no more than the table may have; those in it are renewed', async () => {
    const rows = new AgentRows(database);
    expect(await rows.register(shop, 1)).toMatchObject(shop);

    expect(await rows.register({ ...shop, id: 'other' }, 1)).toBeNull();
    expect(await rows.register({ ...shop, version: '9' }, 1)).toMatchObject({ version: '9' });
    await age('shop', '25 hours');
    expect(await rows.register({ ...shop, id: 'other' }, 1)).toMatchObject({ id: 'other' });
  });

  it.each<[string, string, object, string]>([
    ['another id than the address', '/other', shop, 'id'],
    ['an id with a dot', '/a.b', { ...shop, id: 'a.b' }, 'id'],
    ['no name', '/shop', { ...shop, name: '' }, 'name'],
    ['a name with NUL', '/shop', { ...shop, name: 'a\0' }, 'name'],
    ['a name with a lone surrogate', '/shop', { ...shop, name: '\ud800' }, 'name'],
    ['a version that is a number', '/shop', { ...shop, version: 7 }, 'version'],
    ['an address with a password', '/shop', { ...shop, url: 'https://anna:secret@shop.example' }, 'url'],
    ['an address of another scheme', '/shop', { ...shop, url: 'javascript:alert(1)' }, 'url'],
    ['no address', '/shop', { ...shop, url: undefined }, 'url'],
    ['an address of 2,049 characters', '/shop', { ...shop, url: `https://shop.example/${'x'.repeat(2_048)}` }, 'url'],
  ])('are refused with 400 and the field for %s', async (_, path, body, param) => {
    const response = await send('PUT', path, body);

    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
    expect(response.body).not.toContain('secret@');
    expect((await database.query('select 1 from agents')).rowCount).toBe(0);
  });

  it.each([
    ['/unknown', 404],
    ['/a.b', 404],
    ['/%00', 404],
    ['?limit=0', 400],
    ['?cursor=a.b', 400],
  ])('of %s are answered with %i', async (path, status) => {
    expect((await send('GET', path)).statusCode).toBe(status);
  });

  it('DESIGN 11: register and are read with the platform keys alone', async () => {
    for (const authorization of ['', `Bearer ${KEY}`, 'Bearer sk-test-management', basic('pk-test:sk-other')]) {
      for (const [method, path] of [
        ['PUT', '/shop'],
        ['GET', '/shop'],
        ['GET', ''],
      ] as const) {
        expect((await send(method, path, method === 'PUT' ? shop : undefined, authorization)).statusCode).toBe(401);
      }
    }
  });
});
