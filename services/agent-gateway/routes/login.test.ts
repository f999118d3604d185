import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { API_KEY, BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const HOST = { host: 'agent.example' };
const FORM = { ...HOST, 'content-type': 'application/x-www-form-urlencoded', origin: 'https://agent.example' };
const COOKIE = { cookie: `agent_auth=${API_KEY}` };

let deployment: TestDeployment;
/** Each test has an address of its own. */
let client = 0;

beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => {
  client += 1;
  return deployment.closeApps();
});
afterAll(() => deployment.close());

const open = (changes: Parameters<TestDeployment['app']>[0] = {}) => deployment.app({ ...changes, waits: { loginMs: 0, ...changes.waits } });
const from = () => ({ remoteAddress: `10.0.0.${client}` });
const submit = (app: ReturnType<typeof open>, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/auth/login', headers: { ...FORM, ...headers }, payload: new URLSearchParams(fields).toString(), ...from() });
const send = (app: ReturnType<typeof open>, payload: object, headers: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/auth/login', headers: { ...HOST, ...headers }, payload, ...from() });

describe('a login', () => {
  it('by JSON sets the cookie with the key and has no body', async () => {
    const reply = await send(open(), { key: API_KEY });

    expect([reply.statusCode, reply.body]).toEqual([204, '']);
    expect(reply.headers['set-cookie']).toBe(`agent_auth=${API_KEY}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure`);
    expect(reply.headers['cache-control']).toBe('no-store');
  });

  it('by the form leads to the page that was asked for', async () => {
    const app = open();
    const form = await app.inject({ url: '/auth/login?next=/chat%3Fsession%3Dses_1', headers: HOST });
    const [, next = ''] = /name="next" value="([^"]*)"/.exec(form.body) ?? [];

    const reply = await submit(app, { key: ` ${API_KEY}\n`, next });

    expect([reply.statusCode, reply.headers.location]).toEqual([303, '/chat?session=ses_1']);
    expect(reply.headers['set-cookie']).toContain(`agent_auth=${API_KEY};`);
  });

  it.each(['localhost:8080', '127.0.0.1:8080', '[::1]:8080', 'LOCALHOST'])('at %s sets a cookie that browsers send over plain http', async (host) => {
    expect((await send(open(), { key: API_KEY }, { host })).headers['set-cookie']).not.toContain('Secure');
  });

  it.each(['localhost.example.com', '127.0.0.1.example', '10.0.0.1:8080'])('at %s sets a cookie for https alone', async (host) => {
    expect((await send(open(), { key: API_KEY }, { host })).headers['set-cookie']).toMatch(/; Secure$/);
  });

  it('with a wrong key is 401, sets nothing, and repeats no key', async () => {
    const app = open();
    const byJson = await send(app, { key: 'sk-wrong' });
    const byForm = await submit(app, { key: 'sk-wrong', next: '/chat' });

    expect(byJson.json()).toEqual({ error: 'this is not the key of this agent', code: 'unauthorized' });
    expect(byForm.headers['content-type']).toContain('text/html');
    for (const { statusCode, headers, body } of [byJson, byForm]) {
      expect([statusCode, headers['set-cookie'], headers['www-authenticate']]).toEqual([401, undefined, 'Bearer']);
      expect(body).not.toContain('sk-wrong');
    }
  });

  it.each([
    [{}, '/key'],
    [{ key: '' }, '/key'],
    [{ key: 7 }, '/key'],
    [{ key: 'k'.repeat(4_097) }, '/key'],
    [{ key: API_KEY, next: 'https://evil.example' }, '/next'],
    [{ key: API_KEY, next: '//evil.example' }, '/next'],
    [{ key: API_KEY, next: '/\\evil.example' }, '/next'],
    [{ key: API_KEY, next: '/\t/evil.example' }, '/next'],
    [{ key: API_KEY, next: '/chat\r\nset-cookie: a=b' }, '/next'],
    [{ key: API_KEY, next: '/chät' }, '/next'],
    [{ key: API_KEY, next: `/${'c'.repeat(2_048)}` }, '/next'],
  ])('of %j is refused with 400 and the field', async (payload, path) => {
    const reply = await send(open(), payload);

    expect([reply.statusCode, reply.json().path, reply.headers['set-cookie']]).toEqual([400, path, undefined]);
  });

  it('of another page is refused with 403', async () => {
    const app = open();
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'null' }]) {
      const reply = await submit(app, { key: API_KEY }, headers);
      expect([reply.statusCode, reply.headers['set-cookie']]).toEqual([403, undefined]);
    }
  });

  it('DESIGN 11: may be tried five times a minute from one address, at every gateway, whatever the key', async () => {
    const atMs = Math.floor(Date.now() / 60_000) * 60_000;
    const clock = { ...systemClock, nowMs: () => atMs + 15_000 };
    const gateways = [open({ clock }), open({ clock })];
    const tries = [];
    for (let number = 0; number < 5; number += 1) tries.push(await send(gateways[number % 2] ?? open(), { key: number === 4 ? API_KEY : 'sk-wrong' }));

    const last = await send(open({ clock }), { key: API_KEY });

    expect(tries.map(({ statusCode }) => statusCode)).toEqual([401, 401, 401, 401, 204]);
    expect([last.statusCode, last.headers['retry-after'], last.headers['set-cookie']]).toEqual([429, '45', undefined]);
    expect(last.json()).toMatchObject({ code: 'rate_limited' });
    client += 1;
    expect((await send(open({ clock }), { key: API_KEY })).statusCode).toBe(204);
  });

  it('by the form beyond that is the form again, which says how long to wait', async () => {
    const atMs = Math.floor(Date.now() / 60_000) * 60_000 + 15_000;
    const clock = { ...systemClock, nowMs: () => atMs };
    const app = open({ clock });
    for (let number = 0; number < 5; number += 1) await submit(app, { key: 'sk-wrong', next: '/console' });

    const last = await submit(app, { key: API_KEY, next: '/console' });

    expect([last.statusCode, last.headers['retry-after'], last.headers['set-cookie'], last.headers['cache-control']]).toEqual([
      429,
      '45',
      undefined,
      'no-store',
    ]);
    expect(last.headers['content-type']).toContain('text/html');
    expect(last.body).toContain('<p role="alert">Too many tries: wait 45 s.</p>');
    expect(last.body).toContain('name="next" value="/console"');
    expect(last.body).not.toContain(API_KEY);
  });

  it('is counted by each process while the cache is away', async () => {
    const cache = { ...deployment.deps().cache, increment: () => Promise.reject(new Error('the cache is away')) };
    const clock = { ...systemClock, nowMs: () => 1_000_000 };
    const app = open({ cache, clock });
    const statuses = [];
    for (let number = 0; number < 6; number += 1) statuses.push((await send(app, { key: 'sk-wrong' })).statusCode);

    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });
});

it('the form has no script, shows what it is given as text, and no page may frame it', async () => {
  const reply = await open().inject({ url: `/auth/login?next=${encodeURIComponent('/"><script>alert(1)</script>')}`, headers: HOST });

  expect(reply.statusCode).toBe(200);
  expect(reply.body).not.toMatch(/<script|<style|\sstyle=|\son\w+=|https?:/);
  expect(reply.body).toContain('value="/&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"');
  expect(reply.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'self'; script-src 'none'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
});

it('the files of the form are open without a key: styles and a picture, and no script', async () => {
  const app = open();
  const { body } = await app.inject({ url: '/auth/login', headers: HOST });
  const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);

  expect(files.map((path) => path.slice(path.lastIndexOf('.'))).sort()).toEqual(['.css', '.svg']);
  for (const url of files) {
    const reply = await app.inject({ url });
    expect([url, reply.statusCode, reply.headers['cache-control']]).toEqual([url, 200, 'private, max-age=31536000, immutable']);
    expect(reply.headers['content-type']).toMatch(/^(?:text\/css|image\/svg)/);
  }
  const page = await app.inject({ url: '/chat', headers: COOKIE });
  const script = /\/pages\/([\w-]+\.js)/.exec(page.body)?.[1];
  expect((await app.inject({ url: `/auth/pages/${script}` })).statusCode).toBe(404);
});

it('a logout clears the cookie', async () => {
  const app = open();
  const byProgram = await app.inject({ method: 'POST', url: '/auth/logout', headers: { ...HOST, ...COOKIE } });
  const byForm = await app.inject({ method: 'POST', url: '/auth/logout', headers: { ...FORM, ...COOKIE }, payload: '' });

  expect([byProgram.statusCode, byProgram.headers['set-cookie']]).toEqual([204, 'agent_auth=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure']);
  expect([byForm.statusCode, byForm.headers.location]).toEqual([303, '/auth/login']);
  expect((await app.inject({ method: 'POST', url: '/auth/logout', headers: { ...FORM, origin: 'https://evil.example' } })).statusCode).toBe(403);
});

describe('the cookie', () => {
  it('has the powers of the key for reading', async () => {
    expect((await open().inject({ url: '/runs', headers: COOKIE })).statusCode).toBe(200);
  });

  it.each([
    ['of a page of this server', { ...HOST, 'sec-fetch-site': 'same-origin' }, 201],
    ['of such a page over plain http', { ...HOST, origin: 'http://agent.example' }, 201],
    ['behind a proxy that ends TLS', { ...HOST, origin: 'https://agent.example' }, 201],
    ['of a page of another server', { ...HOST, 'sec-fetch-site': 'cross-site', origin: 'https://agent.example' }, 403],
    ['of a page of a sibling domain', { ...HOST, 'sec-fetch-site': 'same-site' }, 403],
    ['of a page of another port', { host: 'agent.example:8080', origin: 'http://agent.example:3000' }, 403],
    ['of a sandboxed page', { ...HOST, origin: 'null' }, 403],
    ['of no known page', HOST, 403],
  ])('DESIGN 11: admits a change %s: %j → %i', async (_, headers, status) => {
    const reply = await open().inject({ method: 'POST', url: '/sessions', headers: { ...COOKIE, ...headers } });

    expect(reply.statusCode).toBe(status);
    if (status === 403) expect(reply.json()).toMatchObject({ code: 'unauthorized' });
  });

  it('does not count beside an Authorization header, and its page need not be known then', async () => {
    const app = open();
    const wrong = { ...COOKIE, authorization: 'Bearer sk-wrong', ...HOST, 'sec-fetch-site': 'same-origin' };

    expect((await app.inject({ method: 'POST', url: '/sessions', headers: wrong })).statusCode).toBe(401);
    expect(
      (await app.inject({ method: 'POST', url: '/sessions', headers: { ...BEARER, cookie: 'agent_auth=wrong', 'sec-fetch-site': 'none' } })).statusCode,
    ).toBe(201);
  });

  it.each(['agent_auth=sk-wrong', 'agent_auth=', 'agent_auth', `Agent_Auth=${API_KEY}`, `other=${API_KEY}`, 'agent_auth=%zz', `x=agent_auth=${API_KEY}`])(
    'is refused as %s',
    async (cookie) => {
      expect((await open().inject({ url: '/runs', headers: { cookie } })).statusCode).toBe(401);
    },
  );

  it('is found among others, also behind one of the same name', async () => {
    const cookie = `a=b; agent_auth=older;agent_auth=${API_KEY} ; c`;

    expect((await open().inject({ url: '/runs', headers: { cookie } })).statusCode).toBe(200);
  });
});

describe('/chat', () => {
  it('DESIGN 11: sends a browser without the cookie to the login, and back', async () => {
    const app = open();
    const reply = await app.inject({ url: '/chat?session=ses_1', headers: { accept: 'text/html,application/xhtml+xml' } });

    expect([reply.statusCode, reply.headers.location]).toEqual([302, '/auth/login?next=%2Fchat%3Fsession%3Dses_1']);
    expect((await app.inject({ url: String(reply.headers.location) })).body).toContain('value="/chat?session=ses_1"');
  });

  it('DESIGN 11: answers 401 to a program without the key, and sends no other address to the login', async () => {
    const app = open();

    expect((await app.inject({ url: '/chat' })).statusCode).toBe(401);
    for (const url of ['/runs', '/nothing', '/chat/x']) expect((await app.inject({ url, headers: { accept: 'text/html' } })).statusCode).toBe(401);
  });

  it('is the page, with the cookie and with the key: the agent’s name, nothing inline, nothing of another host, in no frame', async () => {
    const app = open();
    for (const headers of [COOKIE, BEARER]) {
      const reply = await app.inject({ url: '/chat', headers });
      expect(reply.statusCode).toBe(200);
      expect(reply.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
        'x-frame-options': 'DENY',
        'cache-control': 'no-store',
      });
      expect(reply.body).toContain(`<title>${deployment.deps().bundle.body.manifest.name}</title>`);
      expect(reply.body).not.toMatch(/<script(?![^>]* src="\/pages\/[\w-]+\.js"><)|<style|\son\w+=|https?:/);
    }
  });

  it('has files that only the key opens, and that browsers keep for a year', async () => {
    const app = open();
    const page = await app.inject({ url: '/chat', headers: COOKIE });
    const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);

    expect(files.map((path) => /\.\w+$/.exec(path)?.[0]).sort()).toEqual(expect.arrayContaining(['.css', '.js', '.svg']));
    for (const url of files) {
      expect((await app.inject({ url })).statusCode).toBe(401);
      const reply = await app.inject({ url, headers: COOKIE });
      expect([url, reply.statusCode, reply.headers['cache-control']]).toEqual([url, 200, 'private, max-age=31536000, immutable']);
      const packed = await app.inject({ url, headers: { ...COOKIE, 'accept-encoding': 'br, gzip' } });
      expect(packed.headers['content-encoding']).toBe('gzip');
      expect(gunzipSync(packed.rawPayload).equals(reply.rawPayload)).toBe(true);
    }
    for (const url of ['/pages/chat.html', '/pages/..%2Fchat.html', '/pages/nothing.js']) {
      expect((await app.inject({ url, headers: COOKIE })).statusCode).toBe(404);
    }
  });
});

describe('/', () => {
  it('leads a browser to the page, and by the login without a cookie', async () => {
    const app = open();
    const navigation = { accept: 'text/html,application/xhtml+xml' };

    const reply = await app.inject({ url: '/', headers: { ...navigation, ...COOKIE } });
    expect([reply.statusCode, reply.headers.location]).toEqual([302, '/chat']);
    const before = await app.inject({ url: '/', headers: navigation });
    expect([before.statusCode, before.headers.location]).toEqual([302, '/auth/login?next=%2F']);
  });

  it('answers any other client, with the key alone, with the API’s name, its version and its description', async () => {
    const app = open();

    expect((await app.inject({ url: '/' })).statusCode).toBe(401);
    const { info } = (await app.inject({ url: '/openapi.json', headers: BEARER })).json();
    expect((await app.inject({ url: '/', headers: BEARER })).json()).toEqual({
      name: info.title,
      version: info.version,
      docs: '/docs',
      openapi: '/openapi.json',
    });
  });
});
