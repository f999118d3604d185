import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, type AccountRequest, openAccountApp } from '../test-support/account-app.ts';

/** A Sunday. */
const NOW = Date.parse('2026-11-22T12:00:00Z');

let database: Database;
let bus: Bus;
let notices: string[];
let nowMs: number;
let opened: AccountApp;

const clock = { nowMs: () => nowMs };

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  notices = [];
  nowMs = NOW;
  const publish = (subject: string, body: string) => {
    notices.push(subject);
    bus.notices.publish(subject, body);
  };
  opened = openAccountApp({ database, bus: { ...bus, notices: { ...bus.notices, publish } }, clock });
  await database.query('truncate router_keys, key_spend');
  return () => opened.close();
});

const asManager = (...request: AccountRequest) => opened.asManager(...request);

async function made(body: Record<string, unknown> = {}): Promise<{ key: string; data: Record<string, unknown> & { hash: string } }> {
  const response = await asManager('POST', '/keys', { name: 'Shop', ...body });
  expect(response.statusCode).toBe(201);
  return response.json();
}

/** What the ledger's writer stores. */
async function spend(keyId: string, amounts: { at?: string; nano: number; reserved?: number }): Promise<void> {
  const { at = '2026-11-22', nano, reserved = 0 } = amounts;
  const monday = at === '2026-11-22' ? '2026-11-16' : '2026-11-09';
  await database.query(
    `insert into key_spend (key_id, total_nano, day, day_nano, week, week_nano, month, month_nano, reserved_nano)
      values ($1, $2, $3, $2, $4, $2, date_trunc('month', $3::date), $2, $5)`,
    [keyId, nano, at, monday, reserved],
  );
}

const idOf = async (hash: string) => (await database.query<{ id: string }>('select id from router_keys where hash = $1', [hash])).rows[0]?.id ?? '';

const nothingSpent = {
  usage: 0,
  usage_daily: 0,
  usage_weekly: 0,
  usage_monthly: 0,
  byok_usage: 0,
  byok_usage_daily: 0,
  byok_usage_weekly: 0,
  byok_usage_monthly: 0,
};

type Refused = [what: string, body: Record<string, unknown>, param: string];
const refused: Refused[] = [
  ['no name', { name: undefined }, 'name'],
  ['an empty name', { name: '' }, 'name'],
  ['a long name', { name: 'a'.repeat(201) }, 'name'],
  ['a name of another type', { name: 7 }, 'name'],
  ...['\u0000', '\r\nBcc: x@example.com', '\n', '\u001b[2J', '\u2028', '\u202e', '\ud800'].map(
    (text): Refused => [`a name with ${JSON.stringify(text)}`, { name: `a${text}` }, 'name'],
  ),
  ['a negative limit', { limit: -0.000000001 }, 'limit'],
  ['a huge limit', { limit: 1_000_000.1 }, 'limit'],
  ['a limit as text', { limit: '5' }, 'limit'],
  ['another reset', { limit_reset: 'hourly' }, 'limit_reset'],
  ['an expiry without a time', { expires_at: '2027-01-31' }, 'expires_at'],
  ['an expiry that has passed', { expires_at: '2026-11-22T12:00:00Z' }, 'expires_at'],
  ['an expiry before all calendars', { expires_at: '0000-01-01T00:00:00Z' }, 'expires_at'],
  ['no e-mail address', { owner_email: 'owner' }, 'owner_email'],
  ['an e-mail address with a header', { owner_email: 'a@example.com\r\nBcc: b@example.com' }, 'owner_email'],
  ['an e-mail address with a NUL', { owner_email: 'a\u0000@example.com' }, 'owner_email'],
  ['a long e-mail address', { owner_email: `${'a'.repeat(60)}@${'b.'.repeat(100)}example.com` }, 'owner_email'],
  ['half a request', { requests_per_minute: 0.5 }, 'requests_per_minute'],
  ['no tokens', { tokens_per_minute: 0 }, 'tokens_per_minute'],
  ['more calls than count', { calls_at_once: 1e300 }, 'calls_at_once'],
  ['an unknown field', { limits: 5 }, 'limits'],
  ['another workspace', { workspace_id: 'other' }, 'workspace_id'],
  ['a creator with a line break', { creator_user_id: 'a\nb' }, 'creator_user_id'],
];

describe('POST /keys', () => {
  it('makes a key: 201, with its secret and all fields', async () => {
    const response = await asManager('POST', '/keys', { name: 'Shop' });
    const { key, data } = response.json();

    expect(response.statusCode).toBe(201);
    expect(key).toMatch(/^sk-sy-v1-[0-9a-f]{64}$/);
    expect(data).toEqual({
      hash: createHash('sha256').update(key).digest('hex'),
      name: 'Shop',
      label: `${key.slice(0, 12)}...${key.slice(-3)}`,
      disabled: false,
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      include_byok_in_limit: false,
      ...nothingSpent,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: null,
      expires_at: null,
      creator_user_id: null,
      external_user: null,
      workspace_id: 'default',
      owner_email: null,
      requests_per_minute: null,
      tokens_per_minute: null,
      calls_at_once: null,
      is_management_key: false,
      exposed_at: null,
      exposed_where: null,
    });
  });

  it.each([
    ['name', 'a'],
    ['name', '名'.repeat(200)],
    ['name', '👩‍🚀 and "quotes" <b>'],
    ['limit', 0],
    ['limit', 0.000000001],
    ['limit', 1_000_000],
    ['limit', null],
    ['limit_reset', 'daily'],
    ['limit_reset', 'weekly'],
    ['limit_reset', 'monthly'],
    ['limit_reset', null],
    ['include_byok_in_limit', true],
    ['expires_at', '9999-12-31T23:59:59.999Z'],
    ['expires_at', null],
    ['creator_user_id', null],
    ['owner_email', 'a.b+c@mail.example.com'],
    ['owner_email', null],
    ['requests_per_minute', 1],
    ['tokens_per_minute', 1_000_000_000],
    ['calls_at_once', null],
  ])('takes %s: %j', async (field, value) => {
    expect((await made({ [field]: value })).data[field]).toBe(value);
  });

  it('takes all fields', async () => {
    const body = {
      limit: 12.345678901,
      limit_reset: 'weekly',
      expires_at: '2027-01-31T12:00:00+01:00',
      disabled: true,
      owner_email: 'owner@example.com',
      requests_per_minute: 60,
      tokens_per_minute: 100_000,
      calls_at_once: 4,
      include_byok_in_limit: true,
      creator_user_id: 'user_1',
      workspace_id: 'default',
    };

    const { data } = await made(body);

    expect(data).toMatchObject({ ...body, limit_remaining: 12.345678901, expires_at: '2027-01-31T11:00:00.000Z' });
  });

  it('DESIGN 11: shows the secret once, and stores and logs none of it', async () => {
    const { key, data } = await made();
    const shown = [await asManager('GET', '/keys'), await asManager('GET', `/keys/${data.hash}`)].map(({ body }) => body).join('\n');
    const { rows } = await database.query('select * from router_keys');

    expect(rows).toHaveLength(1);
    for (const text of [shown, JSON.stringify(rows), JSON.stringify(opened.log.lines)]) expect(text).not.toContain(key.slice(20, 40));
  });

  it.each(refused)('refuses %s with 400, and names the field', async (_, body, param) => {
    const response = await asManager('POST', '/keys', { name: 'Shop', ...body });

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ code: 400, type: 'invalid_request', param, message: expect.stringMatching(new RegExp(`^${param} `)) });
    expect((await database.query('select 1 from router_keys')).rows).toEqual([]);
  });

  it.each([
    ['an infinite limit', '{"name": "a", "limit": 1e999}', 400],
    ['no body', '', 400],
    ['a list', '[]', 400],
    ['half a body', '{"name": ', 400],
    ['a prototype', '{"name": "a", "__proto__": {"limit": 1}}', 400],
    ['a name of 1 MB', JSON.stringify({ name: 'a'.repeat(1_000_000) }), 413],
    ['deep nesting', `{"name": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`, 400],
  ])('refuses %s', async (_, body, status) => {
    const response = await asManager('POST', '/keys', body, { 'content-type': 'application/json' });

    expect(response.statusCode).toBe(status);
    expect(response.json().error.code).toBe(status);
  });

  it('refuses a field without an end, and quotes a part of its name', async () => {
    const response = await asManager('POST', '/keys', { name: 'a', [`x${'y'.repeat(30_000)}`]: 1 });

    expect(response.statusCode).toBe(400);
    expect(response.body.length).toBeLessThan(1_000);
  });
});

describe('GET /keys', () => {
  it('lists the keys of the file, then the newest, without disabled ones', async () => {
    await made({ name: 'First' });
    await made({ name: 'Off', disabled: true });
    await made({ name: 'Last' });
    await database.query(`update router_keys set created_at = created_at - interval '1 hour' where name = 'First'`);

    const names = async (query: string) => (await asManager('GET', `/keys${query}`)).json().data.map(({ name }: { name: string }) => name);

    expect(await names('')).toEqual(['Key manager', 'Key plain', 'Key limited', 'Last', 'First']);
    expect(await names('?include_disabled=true')).toEqual(['Key manager', 'Key plain', 'Key limited', 'Key off', 'Last', 'Off', 'First']);
  });

  it('has pages of a hundred', async () => {
    await database.query(
      `insert into router_keys (id, hash, name, label, made_by, created_at)
        select 'k' || n, 'h' || n, 'n' || n, 'l', 'management', now() - n * interval '1 second' from generate_series(1, 150) n`,
    );
    const page = async (offset: number) => (await asManager('GET', `/keys?offset=${offset}`)).json().data.map(({ name }: { name: string }) => name);

    const [first, second, third] = [await page(0), await page(100), await page(2)];

    expect([first.length, second.length, third.length]).toEqual([100, 53, 100]);
    expect([...first, ...second].slice(3)).toEqual(Array.from({ length: 150 }, (_, at) => `n${at + 1}`));
    expect(third.slice(0, 2)).toEqual(['Key limited', 'n1']);
  });

  it.each([
    ['offset', '-1'],
    ['offset', 'x'],
    ['offset', '1e99'],
    ['include_disabled', 'perhaps'],
    ['workspace_id', 'other'],
  ])('refuses %s=%s', async (param, value) => {
    const response = await asManager('GET', `/keys?${param}=${value}`);

    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
  });

  it('shows a key of the file with its limits and what it has spent', async () => {
    await spend('limited', { nano: 500_000_000, reserved: 100_000_000 });

    const { data } = (await asManager('GET', '/keys')).json();

    expect(data[2]).toMatchObject({
      name: 'Key limited',
      label: 'Key limited',
      limit: 2,
      limit_reset: 'daily',
      limit_remaining: 1.4,
      usage: 0.5,
      requests_per_minute: 60,
      tokens_per_minute: 1_000,
      calls_at_once: 3,
      created_at: '1970-01-01T00:00:00.000Z',
    });
    expect(data[0].is_management_key).toBe(true);
  });
});

describe('a key', () => {
  it.each([
    ['today', NOW, { usage_daily: 3, usage_weekly: 3, usage_monthly: 3, limit_remaining: 6.5 }],
    ['on the next day, of the next week', Date.parse('2026-11-23T00:00:00Z'), { usage_daily: 0, usage_weekly: 0, usage_monthly: 3, limit_remaining: 9.5 }],
    ['in the next month', Date.parse('2026-12-01T00:00:00Z'), { usage_daily: 0, usage_weekly: 0, usage_monthly: 0, limit_remaining: 9.5 }],
  ])('counts its windows in UTC: %s', async (_, atMs, amounts) => {
    const { data } = await made({ limit: 10, limit_reset: 'daily' });
    await spend(await idOf(data.hash), { nano: 3_000_000_000, reserved: 500_000_000 });
    nowMs = atMs;

    expect((await asManager('GET', `/keys/${data.hash}`)).json().data).toMatchObject({ usage: 3, limit: 10, ...amounts });
  });

  it('has nothing left of a limit of 0, and never less than nothing', async () => {
    const [none, over] = [await made({ limit: 0 }), await made({ limit: 1 })];
    await spend(await idOf(over.data.hash), { nano: 5_000_000_000 });

    expect(none.data).toMatchObject({ limit: 0, limit_remaining: 0 });
    expect((await asManager('GET', `/keys/${over.data.hash}`)).json().data).toMatchObject({ limit: 1, limit_remaining: 0, usage: 5 });
  });

  it('may have spent more than a number holds exactly', async () => {
    const { data } = await made();
    await database.query(`insert into key_spend (key_id, total_nano, day, week, month) values ($1, 9223372036854775807, now(), now(), now())`, [
      await idOf(data.hash),
    ]);

    expect((await asManager('GET', `/keys/${data.hash}`)).json().data.usage).toBeCloseTo(9_223_372_036.85, 1);
    expect((await asManager('GET', '/credits')).statusCode).toBe(200);
  });
});

describe('PATCH /keys/{hash}', () => {
  it('changes the fields that are given, also to null, and ends the entries of caches', async () => {
    const { data } = await made({ limit: 5, limit_reset: 'monthly', owner_email: 'a@example.com', requests_per_minute: 9, expires_at: '2027-01-01T00:00:00Z' });

    const response = await asManager('PATCH', `/keys/${data.hash}`, { name: 'Other', limit: null, owner_email: null, disabled: true, calls_at_once: 2 });

    expect(response.statusCode).toBe(200);
    const changed = {
      ...data,
      name: 'Other',
      limit: null,
      limit_remaining: null,
      owner_email: null,
      disabled: true,
      calls_at_once: 2,
      updated_at: expect.any(String),
    };
    expect(response.json()).toEqual({ data: changed });
    expect((await asManager('GET', `/keys/${data.hash}`)).json()).toEqual({ data: changed });
    expect(notices).toEqual([`key.${data.hash}`]);
  });

  it.each([
    ['limit', -1],
    ['name', 'a\u0000'],
    ['hash', 'x'],
    ['expires_at', '2020-01-01T00:00:00Z'],
    ['creator_user_id', 'x'],
  ])('refuses a wrong %s and changes nothing', async (param, value) => {
    const { data } = await made();

    const response = await asManager('PATCH', `/keys/${data.hash}`, { disabled: true, [param]: value });

    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
    expect((await asManager('GET', `/keys/${data.hash}`)).json().data).toEqual(data);
    expect(notices).toEqual([]);
  });
});

describe('DELETE /keys/{hash}', () => {
  it('deletes the key and ends the entries of caches; what it has spent stays', async () => {
    const { data } = await made({ limit: 10 });
    await spend(await idOf(data.hash), { nano: 3_000_000_000 });

    const response = await asManager('DELETE', `/keys/${data.hash}`, undefined, { 'content-type': 'application/json' });

    expect([response.statusCode, response.json()]).toEqual([200, { deleted: true }]);
    expect(notices).toEqual([`key.${data.hash}`]);
    expect((await asManager('GET', '/credits')).json().data).toEqual({ total_credits: 5, total_usage: 3 });
    for (const method of ['GET', 'DELETE'] as const) expect((await asManager(method, `/keys/${data.hash}`)).statusCode).toBe(404);
  });
});

describe('a hash', () => {
  it.each(['0'.repeat(64), 'A'.repeat(64), 'x', '%00', '..%2f..%2fcredits'])('that is unknown: 404 (%s)', async (hash) => {
    for (const [method, body] of [['GET'], ['PATCH', { disabled: true }], ['DELETE']] as const) {
      const response = await asManager(method, `/keys/${hash}`, body);

      expect(response.statusCode).toBe(404);
      expect(response.json().error).toMatchObject({ code: 404, type: 'not_found' });
    }
  });

  it('of a key of the file: it is shown, and not changed', async () => {
    const hash = hashOfSecret('plain');

    expect((await asManager('GET', `/keys/${hash}`)).json().data).toMatchObject({ hash, name: 'Key plain', is_management_key: false });
    for (const [method, body] of [['PATCH', { disabled: true }], ['DELETE']] as const) {
      const response = await asManager(method, `/keys/${hash}`, body);

      expect(response.statusCode).toBe(409);
      expect(response.json().error.message).toContain('configuration');
    }
    expect(notices).toEqual([]);
  });
});

describe('GET /key', () => {
  it('shows the calling key, with all fields of the contract', async () => {
    await spend('limited', { nano: 500_000_000, reserved: 100_000_000 });

    const response = await opened.asKey('limited')('GET', '/key');

    expect(response.json()).toEqual({
      data: {
        label: 'Key limited',
        limit: 2,
        limit_remaining: 1.4,
        limit_reset: 'daily',
        ...nothingSpent,
        usage: 0.5,
        usage_daily: 0.5,
        usage_weekly: 0.5,
        usage_monthly: 0.5,
        include_byok_in_limit: false,
        is_free_tier: false,
        is_management_key: false,
        is_provisioning_key: false,
        creator_user_id: null,
        expires_at: null,
        organization_id: null,
        workspace_id: 'default',
        allowed_data_regions: [],
        free_model_daily_requests: { limit: -1, used: 0, remaining: -1 },
        rate_limit: { requests: 60, interval: '1m', note: expect.any(String) },
      },
    });
  });

  it('shows a management key, too', async () => {
    expect((await asManager('GET', '/key')).json().data).toMatchObject({ is_management_key: true, rate_limit: { requests: -1 } });
  });
});

describe('GET /credits', () => {
  it('sums what was spent, and what keys with a limit may still spend', async () => {
    await made({ limit: 10 });
    const daily = await made({ limit: 5, limit_reset: 'daily' });
    await made({ limit: 100, disabled: true });
    await made({ limit: 100, expires_at: '2026-11-22T12:00:00.001Z' });
    nowMs += 1;
    await spend(await idOf(daily.data.hash), { nano: 3_000_000_000, reserved: 1_000_000_000 });
    await spend('limited', { nano: 500_000_000 });
    await spend('gone', { at: '2026-11-10', nano: 4_000_000_000 });

    const response = await asManager('GET', '/credits');

    // Spent: 3, 0.5 and 4. Left: 10, 5 - 3 - 1 and 2 - 0.5.
    expect(response.json()).toEqual({ data: { total_credits: 20, total_usage: 7.5 } });
  });
});

describe('a key that is no management key', () => {
  it.each([
    ['GET', '/keys'],
    ['POST', '/keys'],
    ['GET', '/keys/x'],
    ['PATCH', '/keys/x'],
    ['DELETE', '/keys/x'],
    ['GET', '/credits'],
  ] as const)('gets 403: %s %s', async (method, path) => {
    const response = await opened.asKey('plain')(method, path);

    expect(response.statusCode).toBe(403);
    expect(response.json().error).toMatchObject({ code: 403, type: 'permission_denied' });
  });
});

describe('without a database', () => {
  const requests: AccountRequest[] = [
    ['GET', '/keys'],
    ['POST', '/keys', { name: 'a' }],
    ['GET', `/keys/${'0'.repeat(64)}`],
    ['PATCH', `/keys/${'0'.repeat(64)}`, { name: 'a' }],
    ['DELETE', `/keys/${'0'.repeat(64)}`],
    ['GET', '/key'],
    ['GET', '/credits'],
    ['GET', '/activity'],
  ];
  const refusing = (message: string, code?: string): Database => ({
    query: () => Promise.reject(code === undefined ? new SwitchyardError('service.unreachable', message) : Object.assign(new Error(message), { code })),
    transaction: () => Promise.reject(new Error('not used')),
    close: async () => {},
  });

  it.each([
    ['none is configured', null, 'DATABASE_URL is not set'],
    ['it is unreachable', refusing('no connection'), 'does not answer'],
    ['it shuts down', refusing('terminating connection', '57P01'), 'does not answer'],
    ['its schema is not migrated yet', refusing('no such table', '42P01'), 'does not answer'],
  ])('is refused with 503 and a time to retry: %s', async (_, away, message) => {
    const { asManager: ask, close } = openAccountApp({ database: away, bus, clock });
    for (const request of requests) {
      const response = await ask(...request);

      expect([request, response.statusCode, response.headers['retry-after']]).toEqual([request, 503, '1']);
      expect(response.json().error).toMatchObject({ code: 503, type: 'server', message: expect.stringContaining(message) });
    }
    await close();
  });
});

it('no response is kept by a cache on the way', async () => {
  for (const path of ['/keys', '/key', '/credits', '/activity']) expect((await asManager('GET', path)).headers['cache-control']).toBe('no-store');
});
