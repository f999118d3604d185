import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { bundleWith, withVariables } from '../test-support/bundle.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const TYPES = ['string', 'number', 'boolean', 'object', 'array'] as const;
const bundle = withVariables(
  bundleWith(),
  { id: 'account', variables: [...TYPES.map((type) => ({ name: `a-${type}`, type })), { name: 'plan.v2' }, { name: 'twice', type: 'number' }] },
  { id: 'other', variables: [{ name: 'twice', type: 'string' }] },
);

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  const app = deployment.app();
  for (const id of ['ada', 'b/ea']) await send(app, 'POST', '/customers', { id, name: 'Ada' });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

const app = () => deployment.app({ bundle });

const addresses = [
  ['of a customer', '/customers/ada/variables/plan.v2'],
  ['of a customer, by key', '/variables/plan.v2/values/b%2Fea'],
  ['of a tag', '/variables/plan.v2/values/tag:vip%2Feu'],
  ['of the longest tag', `/variables/plan.v2/values/tag:${'x'.repeat(100)}`],
  ['of all', '/variables/plan.v2/values/DEFAULT'],
] as const;

describe('a value', () => {
  it.each(addresses)('is set, replaced, read and deleted: %s', async (_case, url) => {
    expect((await send(app(), 'GET', url)).statusCode).toBe(404);

    const first = await send(app(), 'PUT', url, { data: 'gold' });
    expect([first.statusCode, first.json()]).toEqual([
      200,
      { name: 'plan.v2', data: 'gold', last_modified: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
    ]);
    expect((await send(app(), 'GET', url)).json()).toEqual(first.json());
    expect((await send(app(), 'PUT', url, { data: 'silver\u0000' })).json()).toMatchObject({ data: 'silver\u0000' });
    expect((await send(app(), 'GET', url)).json()).toMatchObject({ data: 'silver\u0000' });

    expect((await send(app(), 'DELETE', url)).statusCode).toBe(204);
    for (const method of ['GET', 'DELETE'] as const) {
      const reply = await send(app(), method, url);
      expect([reply.statusCode, reply.json()]).toEqual([404, { error: 'the variable has no value for this key', code: 'not_found' }]);
    }
  });

  it('is one under both addresses of a customer, and of one key alone', async () => {
    await send(app(), 'PUT', '/variables/a-number/values/ada', { data: 1 });
    await send(app(), 'PUT', '/variables/a-number/values/DEFAULT', { data: 2 });

    expect((await send(app(), 'GET', '/customers/ada/variables/a-number')).json()).toMatchObject({ data: 1 });
    expect((await send(app(), 'GET', '/customers/b%2Fea/variables/a-number')).statusCode).toBe(404);
    expect((await send(app(), 'GET', '/variables/a-number/values/DEFAULT')).json()).toMatchObject({ data: 2 });
  });

  it.each(TYPES)('is of the type that the variable set declares: %s', async (type) => {
    const values = { string: '', number: 0, boolean: false, object: {}, array: [] };
    for (const given of [...TYPES, 'null'] as const) {
      const data = given === 'null' ? null : values[given];
      const reply = await send(app(), 'PUT', `/variables/a-${type}/values/DEFAULT`, { data });

      if (given === type) expect([reply.statusCode, reply.json().data]).toEqual([200, data]);
      else expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: '/data' }]);
    }
  });

  it('is no number that can not be kept', async () => {
    for (const number of ['1e999', '-1e999', '9007199254740993', '9007199254740993.0', '9007199254740993e0']) {
      const headers = { ...BEARER, 'content-type': 'application/json' };
      const reply = await app().inject({ method: 'PUT', url: '/variables/a-number/values/DEFAULT', headers, payload: `{"data": ${number}}` });

      expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: '/data', error: expect.stringContaining(number) }]);
    }
  });

  it('is of the type of the first set, when several declare the variable', async () => {
    expect((await send(app(), 'PUT', '/variables/twice/values/DEFAULT', { data: 'a text' })).statusCode).toBe(400);
    expect((await send(app(), 'PUT', '/variables/twice/values/DEFAULT', { data: 7 })).statusCode).toBe(200);
  });

  it('has at most 64 KiB', async () => {
    const reply = await send(app(), 'PUT', '/variables/a-string/values/DEFAULT', { data: 'x'.repeat(65_535) });

    expect([reply.statusCode, reply.json()]).toEqual([400, { error: 'data must have at most 64 KiB as JSON', code: 'validation_failed', path: '/data' }]);
    expect((await send(app(), 'PUT', '/variables/a-string/values/DEFAULT', { data: 'x'.repeat(65_534) })).statusCode).toBe(200);
  });

  it('is deleted with its customer, and not that of others', async () => {
    await send(app(), 'POST', '/customers', { id: 'gone', name: 'Ada' });
    for (const key of ['gone', 'tag:gone']) await send(app(), 'PUT', `/variables/a-number/values/${key}`, { data: 1 });

    expect((await send(app(), 'DELETE', '/customers/gone')).statusCode).toBe(204);

    await send(app(), 'POST', '/customers', { id: 'gone', name: 'Ada' });
    expect((await send(app(), 'GET', '/customers/gone/variables/a-number')).statusCode).toBe(404);
    expect((await send(app(), 'GET', '/variables/a-number/values/tag:gone')).statusCode).toBe(200);
  });

  it('is not of the customer of a run, which is deleted with it', async () => {
    await deployment.database.query(`insert into customers (id, name, ephemeral, created_at, updated_at) values ('of-a-run', 'Guest', true, now(), now())`);

    const reply = await send(app(), 'PUT', '/customers/of-a-run/variables/a-number', { data: 1 });

    expect([reply.statusCode, reply.json()]).toMatchObject([400, { path: '/key' }]);
  });
});

it('lists the values of a customer, of declared variables, by name', async () => {
  await send(app(), 'POST', '/customers', { id: 'listed', name: 'Ada' });
  expect((await send(app(), 'GET', '/customers/listed/variables')).json()).toEqual({ items: [] });
  for (const [name, data] of [
    ['twice', 2],
    ['a-boolean', true],
  ] as const)
    await send(app(), 'PUT', `/customers/listed/variables/${name}`, { data });
  await deployment.database.query(`insert into variable_values (key, name, data, updated_at) values ('listed', 'undeclared', '1', now())`);

  expect((await send(app(), 'GET', '/customers/listed/variables')).json()).toMatchObject({
    items: [
      { name: 'a-boolean', data: true },
      { name: 'twice', data: 2 },
    ],
  });
});

describe('an idempotency key', () => {
  it('repeats the first reply of a write, and changes nothing', async () => {
    const url = '/variables/a-number/values/tag:keyed';
    const first = await send(app(), 'PUT', url, { data: 1 }, 'put');
    await send(app(), 'PUT', url, { data: 2 });

    const repeat = await send(app(), 'PUT', url, { data: 3 }, 'put');
    expect([repeat.statusCode, repeat.json()]).toEqual([200, first.json()]);
    expect((await send(app(), 'GET', url)).json()).toMatchObject({ data: 2 });

    for (const _ of [1, 2]) expect((await send(app(), 'DELETE', url, undefined, 'delete')).statusCode).toBe(204);
    expect((await send(app(), 'GET', url)).statusCode).toBe(404);
  });
});

const corpus = new URL('../../../tests/corpus/agent/invalid/put-value.json', import.meta.url);
const invalid = z.array(z.object({ case: z.string(), path: z.string(), request: z.unknown() })).parse(JSON.parse(readFileSync(corpus, 'utf8')));

it.each(invalid)('refuses $case', async ({ path, request }) => {
  const reply = await send(app(), 'PUT', '/customers/ada/variables/plan.v2', request);

  expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: path === '' ? '' : `/${path}` }]);
});

it.each([
  ['an unknown variable', '/customers/ada/variables/unknown', 'there is no such variable'],
  ['an unknown variable, by key', '/variables/unknown/values/DEFAULT', 'there is no such variable'],
  ['a variable with the name of a property', '/variables/__proto__/values/DEFAULT', 'there is no such variable'],
  ['an unknown customer', '/customers/unknown/variables/plan.v2', 'there is no such customer'],
  ['an unknown customer, by key', '/variables/plan.v2/values/unknown', 'there is no such customer'],
  ['the key of all as a customer', '/customers/DEFAULT/variables/plan.v2', 'there is no such customer'],
  ['the key of an empty tag', '/variables/plan.v2/values/tag:', 'there is no such customer'],
  ['a key with NUL', '/variables/plan.v2/values/a%00b', 'there is no such customer'],
  ['a tag with NUL', '/variables/plan.v2/values/tag:a%00b', 'there is no such customer'],
])('is not found before the body is judged: %s', async (_case, url, error) => {
  for (const body of [{ data: 'gold' }, { data: 7 }, {}]) {
    const reply = await send(app(), 'PUT', url, body);
    expect([reply.statusCode, reply.json()]).toEqual([404, { error, code: 'not_found' }]);
  }
  expect((await send(app(), 'GET', url)).json()).toEqual({ error, code: 'not_found' });
});
