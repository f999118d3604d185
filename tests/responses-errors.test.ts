import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readEvents } from '../shared/surfaces/responses/test-support/read-events.ts';
import { brokenAnswer } from './clients/upstream-answers.ts';
import { openWireUpstream, type WireUpstream } from './clients/wire-upstream.ts';
import { failingRouter } from './helpers/failing-router.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';
import { openDeafUpstream, type UnresponsiveUpstream } from './upstreams/scripted-upstream.ts';

const KEYS = { free: 'sk-free', spent: 'sk-spent', rated: 'sk-rated', off: 'sk-off', manager: 'sk-manager' };
const TOTAL_MS = 500;
const HELLO = { model: 'loop/back', input: 'hello' };

let upstream: WireUpstream;
let deaf: UnresponsiveUpstream;
let router: RouterInProcess;
let hasty: RouterInProcess;
let other: RouterInProcess;

beforeAll(async () => {
  upstream = await openWireUpstream();
  deaf = await openDeafUpstream();
  const { config, variables } = failingRouter({ upstreamUrl: upstream.baseUrl, deafUrl: deaf.baseUrl, keys: KEYS });
  router = await openRouterInProcess({ config, variables });
  hasty = await openRouterInProcess({ config: { ...config, timeouts: { connect_ms: 60_000, total_ms: TOTAL_MS } }, variables });
  other = await openRouterInProcess({ config: { ...config, errors: 'response.error' }, variables });
});

afterAll(async () => {
  await Promise.all([router.close(), hasty.close(), other.close()]);
  await Promise.all([upstream.close(), deaf.close()]);
});

const refuse = (status: number, error: object = {}) =>
  upstream.replyWith({ status, body: { error: { message: 'no such luck', type: 'loopback', param: null, code: null, ...error } } });

async function ask(body: object, { key = KEYS.free, at = router } = {}) {
  const response = await fetch(`${at.url}/api/v1/responses`, {
    method: 'POST',
    headers: { ...(key !== '' && { authorization: `Bearer ${key}` }), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const errorBody = z.object({ error: z.object({ code: z.number().int(), message: z.string().min(1), type: z.string(), param: z.string() }) });

type Row = [status: number, why: string, type: string, param: string, send: (more: object) => Promise<{ status: number; text: string }>];

/** "Errors" of the contract, as far as a request of this API leads to them before content. */
const rows: Row[] = [
  [400, 'an invalid parameter', 'invalid_request', 'temperature', (more) => ask({ ...HELLO, temperature: 'hot', ...more })],
  [400, 'a missing parameter', 'invalid_request', 'input', (more) => ask({ model: 'loop/back', ...more })],
  [400, 'an unknown model', 'invalid_request', 'model', (more) => ask({ ...HELLO, model: 'no/model', ...more })],
  [401, 'no key', 'authentication', '', (more) => ask({ ...HELLO, ...more }, { key: '' })],
  [401, 'a disabled key', 'authentication', '', (more) => ask({ ...HELLO, ...more }, { key: KEYS.off })],
  [402, 'a key whose credit is spent', 'payment_required', '', (more) => ask({ ...HELLO, ...more }, { key: KEYS.spent })],
  [403, 'a key of the wrong kind', 'permission_denied', '', (more) => ask({ ...HELLO, ...more }, { key: KEYS.manager })],
  [
    ...([403, 'content that the provider refuses', 'content_policy_violation', ''] as const),
    (more) => {
      refuse(400, { code: 'content_policy_violation' });
      return ask({ ...HELLO, ...more });
    },
  ],
  [408, 'a call beyond the time limit', 'timeout', '', (more) => ask({ ...HELLO, model: 'deaf/model', ...more }, { at: hasty })],
  [
    ...([429, 'a key beyond its rate', 'rate_limit_exceeded', ''] as const),
    async (more) => {
      refuse(500);
      // A window may end between two of them.
      for (let time = 0; time < 3; time += 1) {
        const answer = await ask({ ...HELLO, ...more }, { key: KEYS.rated });
        if (answer.status === 429) return answer;
      }
      return ask({ ...HELLO, ...more }, { key: KEYS.rated });
    },
  ],
  [
    ...([429, 'a provider beyond its rate', 'rate_limit_exceeded', ''] as const),
    (more) => {
      refuse(429);
      return ask({ ...HELLO, ...more });
    },
  ],
  [
    ...([502, 'a provider that is down', 'provider_unavailable', ''] as const),
    (more) => {
      refuse(500);
      return ask({ ...HELLO, ...more });
    },
  ],
  [503, 'no provider that meets the requirements', 'not_found', '', (more) => ask({ ...HELLO, provider: { only: ['elsewhere'] }, ...more })],
];

describe('before content, a failure of /responses has the status and the body of a chat', () => {
  it.each(rows)('%i: %s', async (status, _why, type, param, send) => {
    for (const more of [{}, { stream: true }]) {
      const { status: sent, text } = await send(more);
      const { error } = errorBody.parse(JSON.parse(text));
      expect([sent, error.code, error.type, error.param]).toEqual([status, status, type, param]);
    }
  });
});

describe('the table of events of failures', () => {
  async function lastEventOf(at?: RouterInProcess) {
    upstream.replyWith({ chunks: brokenAnswer });
    const { status, text } = await ask({ ...HELLO, stream: true }, at === undefined ? {} : { at });
    expect(status).toBe(200);
    return readEvents(text).at(-1);
  }

  it.each<[string, unknown]>([
    ['id', expect.stringMatching(/^gen-/)],
    ['status', 'failed'],
    ['error', { code: 'server_error', message: expect.any(String) }],
    ['error_type', 'provider_unavailable'],
    ['output_text', 'Half an '],
    ['usage', expect.objectContaining({ output_tokens: expect.any(Number), cost: expect.any(Number) })],
  ])('response.failed, with the whole response: %s', async (field, value) => {
    expect(await lastEventOf()).toMatchObject({ type: 'response.failed', response: { [field]: value } });
  });

  it('response.error, where the router is set up so', async () => {
    const last = await lastEventOf(other);
    expect(last).toEqual({ type: 'response.error', sequence_number: expect.any(Number), error: { code: 'server_error', message: expect.any(String) } });
  });

  it('a whole response that broke off has the same error', async () => {
    upstream.replyWith({ chunks: brokenAnswer });
    const { status, text } = await ask(HELLO);
    expect([status, JSON.parse(text)]).toMatchObject([200, { status: 'failed', error: { code: 'server_error' }, error_type: 'provider_unavailable' }]);
  });
});
