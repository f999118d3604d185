import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';

const CALLBACK = 'http://localhost:3000/back?state=a%20b';

let database: Database;
let bus: Bus;
let opened: AccountApp;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  opened = openAccountApp({ database, bus, clock: systemClock });
  await database.query('truncate router_keys, key_spend, oauth_codes');
  return () => opened.close();
});

const show = (query: Record<string, string>) => opened.app.inject({ method: 'GET', url: '/auth', query });
const submit = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  opened.app.inject({
    method: 'POST',
    url: '/auth',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString(),
  });
/** The fields of the shown form, as a browser sends them. */
const fieldsOf = (html: string) =>
  Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name, value]) => [name, value?.replaceAll('&amp;', '&') ?? '']),
  );
const exchange = (payload: object) => opened.app.inject({ method: 'POST', url: '/api/v1/auth/keys', payload });

it('shows a form without scripts that no page may frame', async () => {
  const response = await show({ callback_url: CALLBACK, key_label: '<script>alert(1)</script>' });

  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' http://localhost:3000",
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
  });
  expect(response.body).toContain('&lt;script&gt;');
  expect(response.body).not.toContain('<script');
});

it('sends the browser back with a code, and keeps the query of the callback', async () => {
  const shown = await show({ callback_url: CALLBACK, code_challenge: 'the-verifier', limit: '2.5', usage_limit_type: 'daily' });
  const response = await submit({ ...fieldsOf(shown.body), management_key: 'manager' }, { host: 'router.example.com', origin: 'https://router.example.com' });

  expect(response.statusCode).toBe(303);
  expect(response.headers.location).toMatch(/^http:\/\/localhost:3000\/back\?state=a%20b&code=auth_code_[0-9a-f]{64}$/);
  const code = new URL(String(response.headers.location)).searchParams.get('code');
  expect((await exchange({ code, code_verifier: 'the-verifier' })).statusCode).toBe(200);
  expect((await database.query('select name, limit_nano, limit_reset from router_keys')).rows).toEqual([
    { name: 'OAuth: localhost:3000', limit_nano: 2_500_000_000, limit_reset: 'daily' },
  ]);
});

it('shows the code without a callback', async () => {
  const response = await submit({ code_challenge: 'the-verifier', management_key: 'manager' });
  const [code] = /auth_code_[0-9a-f]{64}/.exec(response.body) ?? [];

  expect(response.statusCode).toBe(200);
  expect((await exchange({ code, code_verifier: 'the-verifier' })).statusCode).toBe(200);
});

it.each(['plain', 'unknown', ''])('approves nothing with the key "%s"', async (secret) => {
  const response = await submit({ callback_url: CALLBACK, management_key: secret });

  expect([response.statusCode, response.headers.location]).toEqual([403, undefined]);
  expect(response.body).toContain('not a valid management key');
  expect((await database.query('select 1 from oauth_codes')).rowCount).toBe(0);
});

it.each([
  [{}, 'code_challenge'],
  [{ callback_url: 'http://app.example.com/' }, 'callback_url'],
  [{ callback_url: 'https://a;sandbox/' }, 'callback_url'],
  [{ callback_url: 'javascript:alert(1)' }, 'callback_url'],
  [{ callback_url: CALLBACK, code_challenge: 'a', code_challenge_method: 'MD5' }, 'code_challenge_method'],
  [{ callback_url: CALLBACK, limit: '-1' }, 'limit'],
])('refuses %j with 400, in the address and in the form', async (fields: Record<string, string>, param) => {
  for (const response of [await show(fields), await submit({ ...fields, management_key: 'manager' })]) {
    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
  }
});

it('refuses the form of another page', async () => {
  const response = await submit({ callback_url: CALLBACK, management_key: 'manager' }, { origin: 'https://evil.example' });

  expect([response.statusCode, response.json().error.param]).toEqual([400, 'origin']);
});

it('limits the keys that an address tries in a minute', async () => {
  const tries = await Promise.all(Array.from({ length: 121 }, () => submit({ callback_url: CALLBACK, management_key: 'guessed' })));

  expect(tries.some(({ statusCode }) => statusCode === 429)).toBe(true);
  expect(tries.filter(({ statusCode }) => statusCode === 403).length).toBeLessThanOrEqual(120);
});
