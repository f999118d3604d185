import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from './test-support/api.ts';
import { bundleWith, withVariables } from './test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, type TestDeployment } from './test-support/test-deployment.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

interface Route {
  method: (typeof METHODS)[number];
  url: string;
  /** Whether requests need the agent's key. */
  needsKey: boolean;
}

const bundle = withVariables(bundleWith({ id: 'triage' }), { id: 'account', variables: [{ name: 'plan' }] });
const known: Record<string, string> = { routine_id: 'triage', customer_id: 'ada', variable_name: 'plan', key: 'DEFAULT' };

let deployment: TestDeployment;
let routes: Route[];
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  routes = await routesOf(deployment);
  const app = deployment.app({ bundle });
  known['session_id'] = await newSession(app);
  known['event_id'] = (await send(app, 'POST', `/sessions/${known['session_id']}/events`, { kind: 'user_message', text: 'hello' })).json().id;
  await send(app, 'POST', '/customers', { id: 'ada', name: 'Ada' });
  known['run_id'] = (await send(app, 'POST', '/routines/triage/trigger', { callback_url: 'https://example.com/' })).json().run_id;
  known['dead_letter_id'] = 'lost';
  await deployment.database.query(`insert into dead_letters (id, source, reason, body, created_at) values ('lost', 'tool', 'r', '', now())`);
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

/** All that the app has registered, so that a new route is checked without a row here. */
async function routesOf({ app }: TestDeployment): Promise<Route[]> {
  const found: Route[] = [];
  const built = app({ bundle });
  built.addHook('onRoute', ({ method, url, config }) => {
    for (const one of [method].flat()) {
      const known = METHODS.find((name) => name === one);
      if (known !== undefined) found.push({ method: known, url, needsKey: config?.isPublic !== true && config?.isSigned !== true });
    }
  });
  await built.ready();
  return found.filter(({ needsKey }) => needsKey);
}

const named = ({ method, url }: Route) => `${method} ${url}`;
const parametersIn = (url: string) => [...url.matchAll(/:(\w+)/g)].flatMap(([, name]) => name ?? []);
/** With each parameter replaced. */
const addressOf = (url: string, values: Record<string, string>) =>
  parametersIn(url).reduce((text, name) => text.replace(`:${name}`, values[name] ?? 'unknown'), url);
/** A list is no valid body of any route. */
const invalidBody = ({ method }: Route) => (method === 'GET' || method === 'DELETE' ? undefined : []);

const errorBody = (code: string) => ({ error: expect.stringMatching(/^[^\n]+$/), code });

describe('each route of the agent server', () => {
  it('is found by this test', () => {
    expect(routes.map(named)).toEqual(
      expect.arrayContaining(['POST /sessions', 'GET /sessions', 'PUT /variables/:variable_name/values/:key', 'GET /runs/:run_id']),
    );
    expect(routes.length).toBeGreaterThan(20);
  });

  it('refuses a request without a key first, whatever else is wrong', async () => {
    const app = deployment.app({ bundle, bus: { ...deployment.bus, isReady: () => false } });
    for (const route of routes) {
      const payload = invalidBody(route);
      const reply = await app.inject({ method: route.method, url: addressOf(route.url, {}), ...(payload === undefined ? {} : { payload }) });
      expect([named(route), reply.statusCode, reply.json()]).toEqual([named(route), 401, errorBody('unauthorized')]);
    }
  });

  it('refuses all requests with 503 while it is not ready, also those that would be 404 or 400', async () => {
    const app = deployment.app({ bundle, bus: { ...deployment.bus, isReady: () => false } });
    for (const route of routes) {
      const reply = await send(app, route.method, addressOf(route.url, {}), invalidBody(route));
      expect([named(route), reply.statusCode, reply.json(), reply.headers['retry-after']]).toEqual([named(route), 503, errorBody('not_ready'), '1']);
    }
  });

  it('refuses an unknown id with 404 before it judges body and query, whichever of its parameters it is', async () => {
    const app = deployment.app({ bundle });
    for (const route of routes) {
      for (const unknown of parametersIn(route.url)) {
        const values = { ...known, [unknown]: 'unknown' };
        for (const query of ['', '?limit=0&sort=x&cascade=x&min_offset=x&cursor=x&force=x']) {
          const reply = await send(app, route.method, `${addressOf(route.url, values)}${query}`, invalidBody(route));
          expect([named(route), unknown, reply.statusCode, reply.json()]).toEqual([named(route), unknown, 404, errorBody('not_found')]);
        }
      }
    }
  });
});

const INVALID: readonly (readonly [route: string, query: string, body: unknown, path: string])[] = [
  ['POST /sessions', '', [], ''],
  ['POST /sessions', '', { mode: 'off' }, '/mode'],
  ['POST /sessions', '', { customer_id: 'unknown' }, '/customer_id'],
  ['POST /sessions', '?allow_greeting=x', {}, '/allow_greeting'],
  ['GET /sessions', '?limit=0', undefined, '/limit'],
  ['GET /sessions', '?cursor=abc', undefined, '/cursor'],
  ['PATCH /sessions/:session_id', '', { colour: 'red' }, '/colour'],
  ['POST /sessions/:session_id/events', '', { kind: 'user_message', text: '' }, '/text'],
  ['GET /sessions/:session_id/events', '?limit=x', undefined, '/limit'],
  ['PATCH /sessions/:session_id/events/:event_id', '', {}, '/metadata'],
  ['PATCH /sessions/:session_id/events/:event_id', '', { metadata: { plan: 'gold' } }, '/metadata/plan'],
  ['DELETE /sessions/:session_id/events', '', undefined, '/min_offset'],
  ['DELETE /sessions/:session_id/events', '?min_offset=-1', undefined, '/min_offset'],
  ['DELETE /sessions/:session_id/events', '?min_offset=0&force=maybe', undefined, '/force'],
  ['POST /customers', '', {}, '/name'],
  ['GET /customers', '?sort=x', undefined, '/sort'],
  ['PATCH /customers/:customer_id', '', { id: 'other' }, '/id'],
  ['DELETE /customers/:customer_id', '?cascade=x', undefined, '/cascade'],
  ['PUT /customers/:customer_id/variables/:variable_name', '', {}, '/data'],
  ['PUT /variables/:variable_name/values/:key', '', { data: 7 }, '/data'],
  ['POST /routines/:routine_id/trigger', '', {}, '/callback_url'],
  ['GET /runs', '?status=x', undefined, '/status'],
  ['GET /runs/:run_id/steps', '?limit=0', undefined, '/limit'],
];

describe('a request that is not valid', () => {
  it.each(INVALID)('gets 400 with the path: %s%s %j', async (route, query, body, path) => {
    const [method = '', url = ''] = route.split(' ');
    expect(routes.map(named)).toContain(route);

    const reply = await send(deployment.app({ bundle }), method as Route['method'], `${addressOf(url, known)}${query}`, body);

    expect([reply.statusCode, reply.json()]).toEqual([400, { ...errorBody('validation_failed'), path }]);
  });

  it('gets 413 for a body over 1 MiB, 415 for one of another type, and 400 for one that is no JSON, too deep, or with a prototype', async () => {
    const app = deployment.app({ bundle });
    const json = { ...BEARER, 'content-type': 'application/json' };
    for (const [expected, code, headers, payload] of [
      [413, 'payload_too_large', json, JSON.stringify({ name: 'x'.repeat(1_048_577) })],
      [400, 'validation_failed', json, '{"name":'],
      [415, 'validation_failed', { ...BEARER, 'content-type': 'text/plain' }, 'name'],
      [400, 'validation_failed', json, `{"name":"Ada","metadata":{"a":${'['.repeat(100)}${']'.repeat(100)}}}`],
      [400, 'validation_failed', json, '{"name":"Ada","metadata":{"__proto__":1}}'],
    ] as const) {
      const reply = await app.inject({ method: 'POST', url: '/customers', headers, payload });
      expect([reply.statusCode, reply.json()]).toMatchObject([expected, { ...errorBody(code) }]);
    }
  });

  it('gets 409 only behind all other checks', async () => {
    const app = deployment.app({ bundle });
    for (const [body, expected] of [
      [{ id: 'ada', name: 7 }, 400],
      [{ id: 'ada', name: 'Bea' }, 409],
    ] as const) {
      const reply = await send(app, 'POST', '/customers', body);
      expect(reply.statusCode).toBe(expected);
    }
  });
});

describe('an idempotency key', () => {
  it.each([
    ['POST', '/sessions', {}],
    ['DELETE', '/sessions/:session_id', undefined],
    ['PATCH', '/sessions/:session_id', {}],
    ['POST', '/sessions/:session_id/events', { kind: 'user_message', text: 'hello' }],
    ['PATCH', '/sessions/:session_id/events/:event_id', { metadata: {} }],
    ['DELETE', '/sessions/:session_id/events?min_offset=0', undefined],
    ['POST', '/customers', { name: 'Ada' }],
    ['PATCH', '/customers/:customer_id', {}],
    ['DELETE', '/customers/:customer_id', undefined],
    ['PUT', '/customers/:customer_id/variables/:variable_name', { data: 'gold' }],
    ['DELETE', '/customers/:customer_id/variables/:variable_name', undefined],
    ['PUT', '/variables/:variable_name/values/:key', { data: 'gold' }],
    ['DELETE', '/variables/:variable_name/values/:key', undefined],
  ] as const)('is checked by %s %s, behind the ids of the address', async (method, url, body) => {
    const app = deployment.app({ bundle });

    const reply = await send(app, method, addressOf(url, known), body, 'k'.repeat(257));

    expect([reply.statusCode, reply.json()]).toEqual([400, { ...errorBody('validation_failed'), path: '/idempotency-key' }]);
    if (parametersIn(url).length > 0) expect((await send(app, method, addressOf(url, {}), body, 'k'.repeat(257))).statusCode).toBe(404);
  });
});
