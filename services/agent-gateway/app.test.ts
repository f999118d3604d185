import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { BUNDLE_HASH, bundleWith } from './test-support/bundle.ts';
import { API_KEY, BEARER, newSession, openTestDeployment, post, type TestDeployment } from './test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

const UNREADY = { waits: { bootCheckMs: 60_000 } };

/** The database with one statement replaced. */
function databaseWith(name: string, answer: Database['query']): Database {
  return {
    transaction: (work) => deployment.database.transaction(work),
    close: () => deployment.database.close(),
    query: (statement, parameters) =>
      typeof statement !== 'string' && statement.name === name ? answer(statement, parameters) : deployment.database.query(statement, parameters),
  };
}

/** A database without the bundle's row until it is added. */
function lateBundle(): { database: Database; store(): void } {
  let isStored = false;
  const database = databaseWith('agent-gateway-bundle', (statement, parameters) =>
    isStored ? deployment.database.query(statement, parameters) : Promise.resolve({ rows: [], rowCount: 0 }),
  );
  return {
    database,
    store: () => {
      isStored = true;
    },
  };
}

describe('authentication', () => {
  it.each([
    ['no key', {}],
    ['a wrong key', { authorization: 'Bearer sk-test-other' }],
    ['a key with another scheme', { authorization: `Basic ${API_KEY}` }],
    ['the scheme alone', { authorization: 'Bearer ' }],
    ['two keys', { authorization: `Bearer ${API_KEY} ${API_KEY}` }],
    ['the key as a cookie of another name', { cookie: `key=${API_KEY}` }],
  ])('refuses %s with 401 and names the scheme', async (_case, headers) => {
    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers });

    expect(reply.statusCode).toBe(401);
    expect(reply.headers['www-authenticate']).toBe('Bearer');
    expect(reply.json()).toEqual({ error: 'a valid agent key is required: send it as "Authorization: Bearer <key>"', code: 'unauthorized' });
  });

  it.each(['Bearer', 'bearer', 'BEARER'])('accepts the key with the scheme written %s', async (scheme) => {
    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers: { authorization: `${scheme} ${API_KEY}` } });

    expect(reply.statusCode).toBe(201);
  });

  it('does not reveal without a key which addresses exist', async () => {
    const app = deployment.app();

    expect((await app.inject({ url: '/nothing' })).statusCode).toBe(401);
    expect((await app.inject({ url: '/%zz' })).statusCode).toBe(401);
    expect((await app.inject({ url: '/sessions/ses_1' })).statusCode).toBe(401);
  });

  it('refuses the key before it reads the body', async () => {
    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers: { 'content-type': 'application/json' }, payload: '{' });

    expect(reply.statusCode).toBe(401);
  });
});

describe('health', () => {
  it('is live before it is ready', async () => {
    const app = deployment.app({ database: lateBundle().database, ...UNREADY });

    const live = await app.inject({ url: '/health/live' });

    expect(live.statusCode).toBe(200);
    expect(live.json()).toEqual({ status: 'ok', service: 'agent-server' });
    for (const url of ['/health/ready', '/health']) {
      const ready = await app.inject({ url });
      expect(ready.statusCode).toBe(503);
      expect(ready.json()).toEqual({ status: 'booting' });
    }
  });

  it('DESIGN 10: a gateway is ready once its configuration is stored, without another request', async () => {
    const late = lateBundle();
    const app = deployment.app({ database: late.database, ...UNREADY });
    expect((await app.inject({ url: '/health/ready' })).statusCode).toBe(503);

    late.store();

    const ready = await app.inject({ url: '/health' });
    expect(ready.statusCode).toBe(200);
    expect(ready.json()).toEqual({ status: 'ok', service: 'agent-server' });
  });

  it('DESIGN 10: a gateway is booting while the bus can not be reached', async () => {
    const bus = { ...deployment.bus, isReady: () => false };

    const ready = await deployment.app({ bus }).inject({ url: '/health/ready' });

    expect(ready.statusCode).toBe(503);
    expect(ready.json()).toEqual({ status: 'booting' });
  });

  it('DESIGN 10: a gateway is booting while the database does not answer', async () => {
    const database = databaseWith('agent-gateway-bundle', () => new Promise(() => {}));

    const ready = await deployment.app({ database, waits: { readinessMs: 20 } }).inject({ url: '/health/ready' });

    expect(ready.json()).toEqual({ status: 'booting' });
  });

  it('is unavailable, and refuses requests, without the bus', async () => {
    let isReady = true;
    const app = deployment.app({ bus: { ...deployment.bus, isReady: () => isReady } });
    expect((await app.inject({ url: '/health/ready' })).statusCode).toBe(200);

    isReady = false;

    expect((await app.inject({ url: '/health/ready' })).json()).toEqual({ status: 'unavailable' });
    expect((await app.inject({ method: 'POST', url: '/sessions', headers: BEARER })).statusCode).toBe(503);
  });

  it('names the tool servers that cannot be used, to a request with the key alone, and stays ready', async () => {
    const app = deployment.app();
    const rows = [
      [BUNDLE_HASH, 'crm', 'auth_failed'],
      [BUNDLE_HASH, 'erp', 'unreachable'],
      [BUNDLE_HASH, 'shop', 'ready'],
      ['of another configuration', 'old', 'auth_failed'],
    ];
    const insert = 'insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ($1, $2, null, $3, now())';
    for (const row of rows) await deployment.database.query(insert, row);
    onTestFinished(() => deployment.database.query('delete from tool_servers', []).then(() => {}));
    const healthy = { status: 'ok', service: 'agent-server' };

    for (const url of ['/health/ready', '/health']) {
      const asked = await app.inject({ url, headers: BEARER });
      expect([asked.statusCode, asked.json()]).toEqual([200, { ...healthy, tool_servers: { crm: 'auth_failed', erp: 'unreachable' } }]);
      expect((await app.inject({ url })).json()).toEqual(healthy);
      expect((await app.inject({ url, headers: { authorization: 'Bearer wrong' } })).json()).toEqual(healthy);
    }
    const unread = deployment.app({ database: databaseWith('agent-gateway-tool-servers', () => Promise.reject(new Error('away'))) });
    const answer = await unread.inject({ url: '/health/ready', headers: BEARER });
    expect([answer.statusCode, answer.json()]).toEqual([200, healthy]);
  });

  it('answers probes by HEAD as by GET', async () => {
    const app = deployment.app({ bus: { ...deployment.bus, isReady: () => false } });

    const replies = await Promise.all(['/health/live', '/health/ready', '/health'].map((url) => app.inject({ method: 'HEAD', url })));

    expect(replies.map(({ statusCode, body }) => [statusCode, body])).toEqual([
      [200, ''],
      [503, ''],
      [503, ''],
    ]);
  });

  it('answers 404 without a key to an unknown probe', async () => {
    expect((await deployment.app().inject({ url: '/health/other' })).statusCode).toBe(404);
  });
});

describe('refusals', () => {
  it('answers 503 with Retry-After while it is booting, whatever the address and the body', async () => {
    const app = deployment.app({ database: lateBundle().database, ...UNREADY });

    for (const url of ['/sessions', '/nothing', '/%zz']) {
      const reply = await app.inject({ method: 'POST', url, headers: { ...BEARER, 'content-type': 'application/json' }, payload: '{' });
      expect(reply.statusCode).toBe(503);
      expect(reply.headers['retry-after']).toBe('1');
      expect(reply.json()).toEqual({ error: 'the server is still starting', code: 'not_ready' });
    }
  });

  it('answers an unknown address with 404 as JSON', async () => {
    const reply = await deployment.app().inject({ url: '/nothing', headers: BEARER });

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toEqual({ error: 'there is nothing at this address', code: 'not_found' });
  });

  it.each([
    ['DELETE', '/sessions', 'GET, POST'],
    ['GET', '/routines/triage/trigger?x=1', 'POST'],
    ['PUT', '/sessions/ses_1', 'GET, PATCH, DELETE'],
  ] as const)('answers %s %s, whose method the address does not have, with 405 and those that it has', async (method, url, allowed) => {
    const app = deployment.app();
    const reply = await app.inject({ method, url, headers: BEARER });

    expect([reply.statusCode, reply.headers.allow]).toEqual([405, allowed]);
    expect(reply.json()).toEqual({ error: `this address takes ${allowed}, not ${method}`, code: 'not_found' });
    expect((await app.inject({ method, url })).statusCode).toBe(401);
  });

  it.each([
    ['POST', '/health/live'],
    ['PUT', '/auth/login'],
    ['GET', '/auth/logout'],
    ['GET', '/webhooks/unknown'],
  ] as const)('asks for no key at an address that needs none, also for a method that it does not have: %s %s', async (method, url) => {
    expect((await deployment.app().inject({ method, url })).statusCode).toBe(405);
  });

  it('answers an address that is not well-formed with 400', async () => {
    const reply = await deployment.app().inject({ url: '/sessions/%zz', headers: BEARER });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toEqual({ error: 'address is not well-formed', code: 'validation_failed', path: '/address' });
    expect(reply.headers['x-request-id']).toMatch(/^req_/);
  });

  it('answers an id that is too long with 404', async () => {
    const reply = await deployment.app().inject({ url: `/sessions/${'x'.repeat(500)}`, headers: BEARER });

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toMatchObject({ code: 'not_found' });
  });

  it('answers a body that is not JSON with 400', async () => {
    const headers = { ...BEARER, 'content-type': 'application/json' };

    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers, payload: '{"title": ' });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toEqual({ error: 'the body is not valid JSON', code: 'validation_failed' });
  });

  it('answers a body of another type with 415, and says which to send', async () => {
    const headers = { ...BEARER, 'content-type': 'text/plain' };

    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers, payload: 'hello' });

    expect(reply.statusCode).toBe(415);
    expect(reply.json()).toMatchObject({ code: 'validation_failed' });
  });

  it('names the field that is not valid', async () => {
    const headers = { ...BEARER, 'content-type': 'application/json' };

    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers, payload: '{"labels": ["a", 7]}' });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path: '/labels/1', error: 'labels.1 must be a string; put it in quotes' });
  });

  it.each([
    ['POST', '/sessions', '{"mode": "off"}', 'mode must be one of "auto", "manual"'],
    ['POST', '/sessions', '[]', 'the body must be an object'],
    ['PATCH', '/sessions/ses_1', '{"title": []}', 'title must be a string'],
    ['POST', '/sessions/ses_1/events', '{"kind": "user_message", "text": ""}', 'text must not be empty'],
    ['POST', '/sessions/ses_1/events', '{}', 'kind is missing; it must be one of "user_message", "message", "custom", "status"'],
    ['GET', '/runs?limit=0', undefined, 'limit must be at least 1'],
  ] as const)('explains in a sentence what is wrong with a request, %s %s %s', async (method, url, payload, error) => {
    const app = deployment.app();
    const address = url.replace('ses_1', await newSession(app));

    const reply = await app.inject({ method, url: address, headers: { ...BEARER, 'content-type': 'application/json' }, ...(payload && { payload }) });

    expect(reply.json()).toMatchObject({ code: 'validation_failed', error });
  });

  it('refuses a body over 1 MiB with 413 and accepts one just below', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const frame = JSON.stringify({ kind: 'user_message', text: '' }).length;

    const tooLarge = await post(app, sessionId, { kind: 'user_message', text: 'x'.repeat(1_048_576 - frame + 1) });
    const fits = await post(app, sessionId, { kind: 'user_message', text: 'x'.repeat(1_048_576 - frame) });

    expect(tooLarge.statusCode).toBe(413);
    expect(tooLarge.json()).toMatchObject({ code: 'payload_too_large' });
    expect(fits.statusCode).toBe(201);
  });

  it('hides an internal error and answers 500', async () => {
    const database = databaseWith('agent-gateway-record', () => Promise.reject(new Error('a secret detail')));

    const reply = await deployment.app({ database }).inject({ url: '/sessions/ses_1', headers: BEARER });

    expect(reply.statusCode).toBe(500);
    expect(reply.json()).toEqual({ error: 'internal error', code: 'internal' });
  });

  it('answers 503 while the database is away', async () => {
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const database = databaseWith('agent-gateway-record', () => Promise.reject(away));

    const reply = await deployment.app({ database }).inject({ url: '/sessions/ses_1', headers: BEARER });

    expect(reply.statusCode).toBe(503);
    expect(reply.json()).toEqual({ error: 'the server can not reach its stores right now', code: 'not_ready' });
  });
});

describe('a malformed or hostile body', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const send = async (app: ReturnType<TestDeployment['app']>, url: string, payload: string, headers = {}) =>
    app.inject({ method: 'POST', url, headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload });

  it.each([70, 100_000])('is answered with 400 when it is nested %d levels deep, and never stored', async (levels) => {
    const app = deployment.app({ bundle: bundleWith({ id: 'triage' }) });
    const sessionId = await newSession(app);
    const commands = deployment.owner.commands.length;
    const bodies: [string, string][] = [
      ['/sessions', `{"metadata":{"a":${deep(levels)}}}`],
      [`/sessions/${sessionId}/events`, `{"kind":"user_message","text":"Hello","metadata":{"a":${deep(levels)}}}`],
      ['/routines/triage/trigger', `{"callback_url":"https://example.com/","metadata":{"a":${deep(levels)}}}`],
      ['/routines/triage/trigger', `{"callback_url":"https://example.com/","input":{"a":${deep(levels)}}}`],
    ];
    for (const [url, payload] of bodies) {
      const reply = await send(app, url, payload);
      expect(reply.statusCode).toBe(400);
      expect(reply.json()).toMatchObject({
        code: 'validation_failed',
        error: expect.stringContaining('nested'),
        path: expect.stringMatching(/^\/(metadata|input)\/a/),
      });
    }
    expect(deployment.owner.commands).toHaveLength(commands);
  });

  it.each(['{"__proto__": {"title": "x"}}', '{"constructor": {"prototype": {}}}'])('is answered with 400 when it is %s', async (payload) => {
    expect((await send(deployment.app(), '/sessions', payload)).statusCode).toBe(400);
  });

  it.each(['gzip', 'br', 'identity, gzip'])('is answered with 415 when its encoding is %s, and the header is named', async (encoding) => {
    const app = deployment.app();
    const reply = await send(app, '/sessions', '{}', { 'content-encoding': encoding });

    expect(reply.statusCode).toBe(415);
    expect(reply.json()).toEqual({ error: expect.stringContaining('Content-Encoding'), code: 'validation_failed' });
    const ofNoSession = await send(app, '/sessions/ses_none/events', '{}', { 'content-encoding': encoding });
    expect(ofNoSession.statusCode).toBe(404);
  });

  it('is answered with 415 when its charset is UTF-16', async () => {
    const reply = await send(deployment.app(), '/sessions', '{}', { 'content-type': 'application/json; charset=utf-16' });

    expect([reply.statusCode, reply.json()]).toEqual([415, { error: expect.stringContaining('UTF-8'), code: 'validation_failed' }]);
  });

  it('is read when its encoding is identity', async () => {
    expect((await send(deployment.app(), '/sessions', '{"title": "One"}', { 'content-encoding': 'identity' })).statusCode).toBe(201);
  });

  it('is read as JSON without a content type', async () => {
    const app = deployment.app();
    const { authorization } = BEARER;
    const bodies = [
      ['{"title": "One"}', 201, {}],
      [Readable.from(['{"title": ', '"One"}']), 201, { 'transfer-encoding': 'chunked' }],
      ['title=One', 400, {}],
    ] as const;
    for (const [payload, status, framing] of bodies) {
      const reply = await app.inject({ method: 'POST', url: '/sessions', headers: { authorization, ...framing }, payload });

      expect(reply.statusCode).toBe(status);
      if (status === 201) expect(reply.json()).toMatchObject({ title: 'One' });
      else expect(reply.json()).toEqual({ error: 'the body is not valid JSON', code: 'validation_failed' });
    }
  });
});

describe('methods', () => {
  it.each(['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE'] as const)('refuses %s without a key, and answers 405 to it with one', async (method) => {
    const app = deployment.app();
    const url = `/sessions/${await newSession(app)}/events`;

    expect((await app.inject({ method: method as 'HEAD', url })).statusCode).toBe(401);
    expect((await app.inject({ method: method as 'HEAD', url, headers: BEARER })).statusCode).toBe(405);
  });
});

describe('request ids', () => {
  it('returns the id that the caller sent', async () => {
    const reply = await deployment.app().inject({ url: '/health/live', headers: { 'x-request-id': 'call-7' } });

    expect(reply.headers['x-request-id']).toBe('call-7');
  });

  it.each([undefined, '', 'two words', 'x'.repeat(200)])('generates one instead of %j', async (given) => {
    const reply = await deployment.app().inject({ url: '/nothing', headers: given === undefined ? {} : { 'x-request-id': given } });

    expect(reply.headers['x-request-id']).toMatch(/^req_[0-9A-Z]{26}$/);
  });
});
