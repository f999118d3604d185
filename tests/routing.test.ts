import { afterAll, beforeAll, expect, it } from 'vitest';
import { chosen } from '../services/router-worker/call/test-support/chosen.ts';
import { routerConfig } from '../shared/config/router-config.ts';
import { inParallel } from './helpers/in-parallel.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

const variables = { ONE: 'sk-one', NARROW: 'sk-narrow', MANAGER: 'sk-manager' };
const priced = (provider: string, price: string, more: object = {}) => ({
  provider,
  upstream_model: 'm',
  prices: { prompt: price, completion: price },
  ...more,
});
const MODEL = { id: 'a/one', endpoints: [priced('dear', '3', { tag: 'dear/turbo' }), priced('cheap', '1'), priced('barred', '0')] };
const config = {
  providers: ['cheap', 'dear', 'barred'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [MODEL],
  keys: [
    { id: 'one', key: '${ONE}' },
    { id: 'narrow', key: '${NARROW}', account: { allowed_providers: ['dear'] } },
    { id: 'manager', key: '${MANAGER}', management: true },
  ],
  account: { ignored_providers: ['barred'] },
};
/** That none of them draws the one in ten: once in seven million runs. */
const CALLS = 150;
const AT_ONCE = 16;

let router: RouterInProcess;
beforeAll(async () => {
  router = await openRouterInProcess({ config, variables });
});
afterAll(() => router.close());

async function complete(key: string, fields: object = {}): Promise<{ response: Response; provider: string; body: { error?: { metadata: object } } }> {
  const response = await fetch(`${router.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'a/one', messages: [{ role: 'user', content: 'Hello!' }], ...fields }),
  });
  const body = (await response.json()) as { provider?: string; error?: { metadata: object } };
  return { response, provider: body.provider ?? '', body };
}

it('of two providers each call is answered by the one that its id draws: nine of ten by the one at a third of the price', async () => {
  const drawn = { providers: config.providers.slice(0, 2), models: [{ ...MODEL, endpoints: MODEL.endpoints.slice(0, 2) }], keys: config.keys };
  const choices = routerConfig.parse(drawn);
  const providers: string[] = [];
  await inParallel(Array.from({ length: CALLS }), AT_ONCE, async () => {
    const { response, provider } = await complete('sk-one');
    const seed = response.headers.get('x-generation-id') ?? '';
    // Of many ids it is nine of ten, within 1 % (default-order.test.ts).
    expect(provider).toBe(chosen(choices, {}, {}, { seed }).candidates[0]?.provider.slug);
    providers.push(provider);
  });

  expect(providers).toHaveLength(CALLS);
  expect(new Set(providers)).toEqual(new Set(['cheap', 'dear']));
});

it('DESIGN 8: the rules of the account hold for each key, those of a key for it alone, whatever a request asks for', async () => {
  const made = await fetch(`${router.url}/api/v1/keys`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-manager', 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'made over HTTP' }),
  });
  const { key } = (await made.json()) as { key: string };
  const preferring = { provider: { order: ['barred', 'cheap'] } };

  expect((await complete('sk-one', preferring)).provider).toBe('cheap');
  expect((await complete(key, preferring)).provider).toBe('cheap');
  expect((await complete('sk-narrow', preferring)).provider).toBe('dear');
});

it('what no provider can serve is 503 with the filters, and is not to be repeated', async () => {
  const { response, body } = await complete('sk-narrow', { provider: { only: ['cheap'] } });

  expect(response.status).toBe(503);
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(body.error?.metadata).toMatchObject({
    excluded_by: [{ filter: 'allowed_providers', endpoints: ['a/one@dear/turbo', 'a/one@cheap', 'a/one@barred'] }],
  });
});

it('a call that may not fall back ends with the error of its provider', async () => {
  const failing = { messages: [{ role: 'user', content: '!fail connect' }], provider: { order: ['cheap'], allow_fallbacks: false } };
  const { response, body } = await complete('sk-one', failing);

  expect([response.status, body.error?.metadata]).toEqual([502, expect.objectContaining({ provider_name: 'cheap' })]);
});
