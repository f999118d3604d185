import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const CALLBACK = 'https://app.example.com/back?state=1';
/** Its SHA-256 in base64 has both characters in which the alphabets differ, and padding. */
const VERIFIER = verifierWithAllCharacters();

let database: Database;
let bus: Bus;
let nowMs: number;
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
  nowMs = NOW;
  opened = openAccountApp({ database, bus, clock: { nowMs: () => nowMs } });
  await database.query('truncate router_keys, key_spend, oauth_codes');
  return () => opened.close();
});

function verifierWithAllCharacters(): string {
  for (let at = 0; ; at++) {
    const digest = createHash('sha256').update(`verifier-${at}`).digest('base64');
    if (digest.includes('+') && digest.includes('/')) return `verifier-${at}`;
  }
}

async function codeOf(body: Record<string, unknown> = {}): Promise<string> {
  const response = await opened.asManager('POST', '/auth/keys/code', { callback_url: CALLBACK, ...body });
  expect([response.statusCode, response.json()]).toEqual([
    200,
    { data: { id: expect.any(String), app_id: expect.any(Number), created_at: new Date(nowMs).toISOString() } },
  ]);
  return response.json().data.id;
}

const exchange = (payload: object, prefix = '/api/v1') => opened.app.inject({ method: 'POST', url: `${prefix}/auth/keys`, payload });
const challengeBy = (encoding: 'base64' | 'base64url') => createHash('sha256').update(VERIFIER).digest(encoding);

describe('POST /auth/keys', () => {
  it.each(['/api/v1', '/v1'])('makes the approved key, below %s', async (prefix) => {
    const expires_at = '2026-12-01T00:00:00Z';
    const code = await codeOf({ key_label: 'The app', limit: 2.5, usage_limit_type: 'weekly', expires_at });
    const response = await exchange({ code }, prefix);

    expect([response.statusCode, response.json()]).toEqual([200, { key: expect.stringMatching(/^sk-sy-v1-[0-9a-f]{64}$/), user_id: null }]);
    expect(response.headers['cache-control']).toBe('no-store');
    const { key } = response.json();
    const { rows } = await database.query('select name, limit_nano, limit_reset, made_by, management, hash from router_keys');
    expect(rows).toEqual([{ name: 'The app', limit_nano: 2_500_000_000, limit_reset: 'weekly', made_by: 'oauth', management: false, hash: hashOfSecret(key) }]);
    expect((await opened.asKey(key)('GET', '/key')).statusCode).toBe(200);
    nowMs = Date.parse(expires_at);
    expect((await opened.asKey(key)('GET', '/key')).json().error).toMatchObject({ code: 401, message: expect.stringContaining('OAuth session') });
  });

  it.each([
    ['base64url', challengeBy('base64url')],
    ['padded', `${challengeBy('base64url')}=`],
    ['base64', challengeBy('base64')],
    ['base64 without padding', challengeBy('base64').replace('=', '')],
  ])('accepts the verifier of a challenge by S256 in %s, and no other', async (_, code_challenge) => {
    const challenge = { code_challenge, code_challenge_method: 'S256' };

    expect((await exchange({ code: await codeOf(challenge), code_verifier: VERIFIER })).statusCode).toBe(200);
    expect((await exchange({ code: await codeOf(challenge), code_verifier: `${VERIFIER}x` })).statusCode).toBe(403);
    expect((await exchange({ code: await codeOf(challenge), code_verifier: code_challenge })).statusCode).toBe(403);
    expect((await exchange({ code: await codeOf(challenge) })).statusCode).toBe(403);
  });

  it.each([{ code_challenge_method: 'plain' }, {}])('compares a plain challenge: %j', async (method) => {
    const code = await codeOf({ code_challenge: VERIFIER, ...method });

    expect((await exchange({ code, code_verifier: VERIFIER, code_challenge_method: 'plain' })).statusCode).toBe(200);
    expect((await exchange({ code: await codeOf({ code_challenge: VERIFIER }), code_verifier: 'x' })).statusCode).toBe(403);
  });

  it('makes one key of many exchanges at once, and none later', async () => {
    const code = await codeOf();
    await opened.close();
    let found = 0;
    let release = () => {};
    const allHaveFound = new Promise<void>((resolve) => {
      release = resolve;
    });
    const query: Database['query'] = async (statement, values) => {
      const result = await database.query<never>(statement, values);
      if (typeof statement === 'object' && statement.name === 'router-gateway-code') {
        found += 1;
        if (found === 8) release();
        await allHaveFound;
      }
      return result;
    };
    opened = openAccountApp({ database: { ...database, query }, bus, clock: { nowMs: () => nowMs } });
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => exchange({ code })))).map(({ statusCode }) => statusCode);

    expect(statuses.sort()).toEqual([200, 403, 403, 403, 403, 403, 403, 403]);
    expect((await exchange({ code })).statusCode).toBe(403);
    expect((await database.query('select 1 from router_keys')).rowCount).toBe(1);
  });

  it('ends a code with a wrong verifier', async () => {
    const code = await codeOf({ code_challenge: VERIFIER });

    expect((await exchange({ code, code_verifier: 'wrong' })).statusCode).toBe(403);
    expect((await exchange({ code, code_verifier: VERIFIER })).statusCode).toBe(403);
  });

  it('refuses another method with 400, and keeps the code', async () => {
    const code = await codeOf({ code_challenge: VERIFIER, code_challenge_method: 'plain' });
    const response = await exchange({ code, code_verifier: VERIFIER, code_challenge_method: 'S256' });

    expect([response.statusCode, response.json().error.param]).toEqual([400, 'code_challenge_method']);
    expect((await exchange({ code, code_verifier: VERIFIER })).statusCode).toBe(200);
  });

  it('refuses a code after ten minutes, and says so', async () => {
    const [code, other] = [await codeOf(), await codeOf()];
    nowMs += 599_999;
    expect((await exchange({ code })).statusCode).toBe(200);
    nowMs += 1;
    const response = await exchange({ code: other });

    expect([response.statusCode, response.json().error.message]).toEqual([403, 'The code has expired: authorize again']);
  });

  it('refuses an unknown code, bad bodies, and other methods', async () => {
    expect((await exchange({ code: 'auth_code_none' })).statusCode).toBe(403);
    expect((await exchange({})).json().error).toMatchObject({ code: 400, param: 'code' });
    expect((await exchange({ code: 'a', code_challenge_method: 'MD5' })).json().error).toMatchObject({ code: 400, param: 'code_challenge_method' });
    const got = await opened.app.inject({ method: 'GET', url: '/api/v1/auth/keys' });
    expect([got.statusCode, got.headers.allow]).toEqual([405, 'POST']);
  });

  it('limits the tries of an address in a minute', async () => {
    const tries = await Promise.all(Array.from({ length: 61 }, () => exchange({ code: 'auth_code_none' })));

    expect(tries.filter(({ statusCode }) => statusCode === 403)).toHaveLength(60);
    const [refused] = tries.filter(({ statusCode }) => statusCode === 429);
    expect(refused?.headers['retry-after']).toBe('60');
    nowMs += 60_000;
    expect((await exchange({ code: await codeOf() })).statusCode).toBe(200);
  });
});

describe('POST /auth/keys/code', () => {
  it('stores no code, and forgets expired ones', async () => {
    const code = await codeOf({ code_challenge: VERIFIER });
    const { rows } = await database.query('select * from oauth_codes');
    expect(JSON.stringify(rows)).not.toContain(code.slice(10));
    nowMs += 2 * 86_400_000;
    await opened.asManager('POST', '/auth/keys/code', { callback_url: 'http://localhost:3000/' });

    expect((await database.query('select 1 from oauth_codes')).rowCount).toBe(1);
  });

  it.each([
    [{ callback_url: 'http://app.example.com/' }, 'callback_url'],
    [{ callback_url: 'http://localhost.evil.example/' }, 'callback_url'],
    [{ callback_url: 'https://a:b@app.example.com/' }, 'callback_url'],
    [{ callback_url: 'javascript:alert(1)' }, 'callback_url'],
    [{ callback_url: 'nothing' }, 'callback_url'],
    [{ code_challenge: VERIFIER, code_challenge_method: 's256' }, 'code_challenge_method'],
    [{ code_challenge_method: 'S256' }, 'code_challenge'],
    [{ code_challenge: 'a\u0000b' }, 'code_challenge'],
    [{ code_challenge: 'a b' }, 'code_challenge'],
    [{ limit: -1 }, 'limit'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ key_label: 'a\nb' }, 'key_label'],
  ])('refuses %j', async (body, param) => {
    const response = await opened.asManager('POST', '/auth/keys/code', { callback_url: CALLBACK, ...body });

    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
  });

  it('needs a management key', async () => {
    expect((await opened.asKey('plain')('POST', '/auth/keys/code', { callback_url: CALLBACK })).statusCode).toBe(403);
    expect((await opened.asKey('none')('POST', '/auth/keys/code', { callback_url: CALLBACK })).statusCode).toBe(401);
  });
});
