import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { errorReply } from '../services/router-gateway/plugins/error-reply.ts';
import { openWireUpstream, type WireUpstream } from './clients/wire-upstream.ts';
import { failingRouter } from './helpers/failing-router.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';
import { openDeafUpstream, type UnresponsiveUpstream } from './upstreams/scripted-upstream.ts';

const KEYS = { free: 'sk-free', spent: 'sk-spent', rated: 'sk-rated', off: 'sk-off', manager: 'sk-manager' };
/** What the router's file and a test may wait for a provider that is never connected. */
const TOTAL_MS = 500;
const HELLO = { model: 'loop/back', messages: [{ role: 'user', content: 'hello' }] };

let upstream: WireUpstream;
let deaf: UnresponsiveUpstream;
let router: RouterInProcess;
let hasty: RouterInProcess;

beforeAll(async () => {
  upstream = await openWireUpstream();
  deaf = await openDeafUpstream();
  const { config, variables } = failingRouter({ upstreamUrl: upstream.baseUrl, deafUrl: deaf.baseUrl, keys: KEYS });
  router = await openRouterInProcess({ config, variables });
  hasty = await openRouterInProcess({ config: { ...config, timeouts: { connect_ms: 60_000, total_ms: TOTAL_MS } }, variables });
});

afterAll(async () => {
  await Promise.all([router.close(), hasty.close()]);
  await Promise.all([upstream.close(), deaf.close()]);
});

const refuse = (status: number, error: object = {}, headers: Record<string, string> = {}) =>
  upstream.replyWith({ status, body: { error: { message: 'no such luck', type: 'loopback', param: null, code: null, ...error } }, headers });

async function call(body: object, { key = KEYS.free, at = router, path = '/chat/completions', method = 'POST' } = {}) {
  const response = await fetch(`${at.url}/api/v1${path}`, {
    method,
    headers: { ...(key !== '' && { authorization: `Bearer ${key}` }), 'content-type': 'application/json' },
    ...(method !== 'GET' && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const errorBody = z.strictObject({
  error: z.strictObject({
    code: z.number().int(),
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string(),
    metadata: z.looseObject({ error_type: z.string() }).optional(),
  }),
});

interface StatusRow {
  status: number;
  why: string;
  type: string;
  param?: string;
  answer(): Promise<{ status: number; text: string }>;
}

/** "Errors" of the contract: each status, with what leads to it. */
const statuses: StatusRow[] = [
  { status: 400, why: 'an invalid parameter', type: 'invalid_request', param: 'temperature', answer: () => call({ ...HELLO, temperature: 'hot' }) },
  { status: 400, why: 'a missing parameter', type: 'invalid_request', param: 'messages', answer: () => call({ model: 'loop/back' }) },
  {
    status: 400,
    why: 'a session_id of 129 characters',
    type: 'invalid_request',
    param: 'session_id',
    answer: () => call({ ...HELLO, session_id: 's'.repeat(129) }),
  },
  { status: 401, why: 'no key', type: 'authentication', answer: () => call(HELLO, { key: '' }) },
  { status: 401, why: 'an unknown key', type: 'authentication', answer: () => call(HELLO, { key: 'sk-unknown' }) },
  { status: 401, why: 'a disabled key', type: 'authentication', answer: () => call(HELLO, { key: KEYS.off }) },
  { status: 402, why: 'a key whose credit is spent', type: 'payment_required', answer: () => call(HELLO, { key: KEYS.spent }) },
  { status: 403, why: 'a key of the wrong kind', type: 'permission_denied', answer: () => call(HELLO, { key: KEYS.manager }) },
  {
    status: 403,
    why: 'content that the provider refuses',
    type: 'content_policy_violation',
    answer: () => {
      refuse(400, { code: 'content_policy_violation' });
      return call(HELLO);
    },
  },
  { status: 408, why: 'a call beyond the time limit', type: 'timeout', answer: () => call({ ...HELLO, model: 'deaf/model' }, { at: hasty }) },
  {
    status: 429,
    why: 'a key beyond its rate',
    type: 'rate_limit_exceeded',
    answer: async () => {
      refuse(500);
      // A window may end between two of them.
      for (let time = 0; time < 3; time += 1) {
        const answer = await call(HELLO, { key: KEYS.rated });
        if (answer.status === 429) return answer;
      }
      return call(HELLO, { key: KEYS.rated });
    },
  },
  {
    status: 429,
    why: 'a provider beyond its rate',
    type: 'rate_limit_exceeded',
    answer: () => {
      refuse(429);
      return call(HELLO);
    },
  },
  {
    status: 500,
    why: 'a fault of the router',
    type: 'server',
    answer: async () => {
      const { status, body } = errorReply(new Error('password of the database'));
      return { status, text: JSON.stringify(body) };
    },
  },
  {
    status: 502,
    why: 'a provider that is down',
    type: 'provider_unavailable',
    answer: () => {
      refuse(500);
      return call(HELLO);
    },
  },
  { status: 503, why: 'no provider that meets the requirements', type: 'not_found', answer: () => call({ ...HELLO, provider: { only: ['elsewhere'] } }) },
];

describe('the table of errors', () => {
  it('has a row for every status of the contract', () => {
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([400, 401, 402, 403, 408, 429, 500, 502, 503]));
  });

  it.each(statuses)('$status: $why', async ({ status, type, param = '', answer }) => {
    const { status: sent, text } = await answer();
    const { error } = errorBody.parse(JSON.parse(text));
    expect([sent, error.code, error.type, error.param]).toEqual([status, status, type, param]);
    expect(text).not.toContain('password');
  });

  it.each([
    ['provider_name', 'Loopback'],
    ['raw', expect.objectContaining({ message: 'no such luck', code: 'odd_thing' })],
    ['error_type', 'invalid_request'],
  ])('metadata of a provider’s error: %s', async (field, value) => {
    refuse(400, { code: 'odd_thing' });
    const { error } = errorBody.parse(JSON.parse((await call(HELLO)).text));
    expect(error.metadata?.[field]).toEqual(value);
  });
});

const chunksIn = (text: string): Record<string, unknown>[] =>
  text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
const said = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_763_700_000, model: 'upstream-model' };
const half = { ...said, choices: [{ index: 0, delta: { role: 'assistant', content: 'Half' }, finish_reason: null }] };

describe('the table of events', () => {
  it.each<[string, unknown]>([
    ['id', expect.stringMatching(/^gen-/)],
    ['object', 'chat.completion.chunk'],
    ['created', expect.any(Number)],
    ['model', 'loop/back'],
    ['provider', 'Loopback'],
    ['error', expect.objectContaining({ code: 502, message: expect.any(String) })],
    ['choices', [expect.objectContaining({ index: 0, delta: { content: '' }, finish_reason: 'error' })]],
  ])('the error chunk, which is the last event: %s', async (field, value) => {
    upstream.replyWith({ chunks: [half], isCut: true });
    const { status, text } = await call({ ...HELLO, stream: true });
    expect([status, text.includes('[DONE]'), chunksIn(text).at(-1)?.[field]]).toEqual([200, false, value]);
  });

  it.each<[string, unknown]>([
    ['id', expect.stringMatching(/^gen-/)],
    ['provider', 'Loopback'],
    ['model', 'loop/back'],
    ['object', 'chat.completion.chunk'],
    ['created', expect.any(Number)],
    ['choices', []],
    ['debug', { echo_upstream_body: expect.objectContaining({ model: 'upstream-model', messages: HELLO.messages }) }],
  ])('the debug chunk, which is the first, of streams alone: %s', async (field, value) => {
    upstream.replyWith({ chunks: [half, { ...said, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }] });
    const asked = { ...HELLO, debug: { echo_upstream_body: true } };
    const { text } = await call({ ...asked, stream: true });
    expect(chunksIn(text)[0]?.[field]).toEqual(value);
    expect((await call(asked)).text).not.toContain('echo_upstream_body');
  });
});

describe('the table of keys', () => {
  const make = (body: object) => call(body, { key: KEYS.manager, path: '/keys' });

  it.each<[string, unknown, unknown]>([
    ['name', 'Shop', ''],
    ['limit', 5, -1],
    ['limit', null, 'much'],
    ['limit_reset', 'daily', 'hourly'],
    ['expires_at', '2999-01-01T00:00:00.000Z', 'tomorrow'],
    ['disabled', true, 'yes'],
    ['include_byok_in_limit', true, 1],
    ['owner_email', 'a@example.com', 'a@example.com\r\nBcc: b@example.com'],
    ['requests_per_minute', 60, 0],
    ['tokens_per_minute', 1_000, 1.5],
    ['calls_at_once', 2, -2],
  ])('%s may be %j, and not %j', async (field, valid, invalid) => {
    const made = await make({ name: 'Shop', [field]: valid });
    expect([made.status, JSON.parse(made.text).data[field]]).toEqual([201, valid]);
    const refused = await make({ name: 'Shop', [field]: invalid });
    expect([refused.status, errorBody.parse(JSON.parse(refused.text)).error.param]).toEqual([400, field]);
  });

  it('a key that has expired is 401, and one without credit 402', async () => {
    const { key } = JSON.parse((await make({ name: 'Shop', limit: 0 })).text);
    expect((await call(HELLO, { key })).status).toBe(402);
    const { key: other, data } = JSON.parse((await make({ name: 'Shop', expires_at: '2999-01-01T00:00:00Z' })).text);
    await router.database.query("update router_keys set expires_at = now() - interval '1 second' where hash = $1", [data.hash]);
    expect((await call(HELLO, { key: other })).status).toBe(401);
  });
});
