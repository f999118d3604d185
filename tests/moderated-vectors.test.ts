import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type EmbeddingUpstream, openEmbeddingUpstream } from './clients/embedding-upstream.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

const keys = { MODERATED: 'sk-moderated', OPEN: 'sk-open' };
type KeyName = keyof typeof keys;
const SECRET = 'the words TOPSECRET of Ada';
const moderation = { id: 'moderation' };
const patterns = [
  { reason: 'secrets', pattern: 'TOPSECRET' },
  // Costly for long texts.
  { reason: 'numbers', pattern: 'Ada[0-9 ]{20,60}' },
];
const off = { id: 'moderation', enabled: false };

let upstream: EmbeddingUpstream;
let router: RouterInProcess;

beforeAll(async () => {
  upstream = await openEmbeddingUpstream();
  const endpoints = [{ provider: 'east', upstream_model: 'v', prices: { prompt: '0', completion: '0' } }];
  const config = {
    providers: [{ slug: 'east', name: 'East', kind: 'openai-compatible', profile: 'openai', base_url: upstream.baseUrl }],
    models: [
      { id: 'a/vectors', embeddings: { dimensions: 4 }, endpoints },
      { id: 'a/chat', endpoints },
    ],
    plugins: { moderation: { name: 'guard', patterns } },
    keys: [
      // A search of the web has no meaning for vectors.
      { id: 'moderated', key: '${MODERATED}', account: { plugins: [{ id: 'web' }, moderation] } },
      { id: 'open', key: '${OPEN}' },
    ],
  };
  router = await openRouterInProcess({ config, variables: keys });
});
afterAll(async () => {
  await router.close();
  await upstream.close();
});
beforeEach(() => upstream.replyWith({}));

async function embed(key: KeyName, input: unknown, fields: object = {}) {
  const response = await fetch(`${router.url}/api/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys[key]}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'a/vectors', input, ...fields }),
  });
  return { status: response.status, ignored: response.headers.get('x-switchyard-ignored'), body: Object(await response.json()) };
}

const metadata = { reasons: ['secrets'], flagged_input: SECRET, provider_name: 'guard', model_slug: 'a/vectors' };

it.each<[string, KeyName, unknown, object]>([
  ['a text, under the moderation of the account', 'MODERATED', SECRET, {}],
  ['one of several texts', 'MODERATED', ['fine', SECRET], {}],
  ['a text among content', 'MODERATED', [{ content: [{ type: 'text', text: SECRET }] }], {}],
  ['a text whose request names other plugins', 'MODERATED', SECRET, { plugins: [{ id: 'web' }] }],
  ['a text whose request asks for moderation itself', 'OPEN', SECRET, { plugins: [{ id: 'web', engine: 'other' }, moderation] }],
])('DESIGN 8: a flagged input of embeddings is refused before any provider: %s', async (_, key, input, fields) => {
  const { status, body } = await embed(key, input, fields);
  expect([status, upstream.requests]).toEqual([403, []]);
  expect(body.error).toMatchObject({ code: 403, type: 'content_policy_violation', message: 'The input was flagged by moderation', metadata });
});

it.each([
  ['embeddings', 'input', (text: string) => ({ input: text })],
  ['responses', 'input', (text: string) => ({ input: text })],
  ['chat/completions', 'messages', (text: string) => ({ messages: [{ role: 'user', content: text }] })],
])('a text of /%s that is too long for moderation is refused naming %s', async (path, param, request) => {
  const response = await fetch(`${router.url}/api/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.OPEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: path === 'embeddings' ? 'a/vectors' : 'a/chat', plugins: [moderation], ...request('x'.repeat(1_100_000)) }),
  });
  const { error } = Object(await response.json());
  expect([response.status, error.param, error.message]).toEqual([413, param, expect.stringContaining('too long for moderation')]);
});

it('what passes is embedded', async () => {
  const { status, body } = await embed('MODERATED', ['fine', 'as well']);
  expect([status, body.data.length, upstream.requests.map(({ input }) => input)]).toEqual([200, 2, [['fine', 'as well']]]);
});

it('a request may switch the moderation of its account off, as in a chat', async () => {
  expect(await embed('MODERATED', SECRET, { plugins: [off] })).toMatchObject({ status: 200, ignored: null });
});

it('token ids are refused where moderation applies: their text is not known', async () => {
  const refused = { status: 400, body: { error: { type: 'invalid_request', param: 'input', message: expect.stringContaining('send texts') } } };
  for (const tokens of [
    [7, 8],
    [[7], [8, 9]],
  ]) {
    expect(await embed('MODERATED', tokens)).toMatchObject(refused);
    expect(await embed('OPEN', tokens, { plugins: [moderation] })).toMatchObject(refused);
    expect(upstream.requests).toEqual([]);
  }
  expect(await embed('OPEN', [7, 8])).toMatchObject({ status: 200 });
  expect(await embed('MODERATED', [7, 8], { plugins: [off] })).toMatchObject({ status: 200 });
});

it('plugins other than moderation have no effect, and are named', async () => {
  const plugins = [moderation, { id: 'web', engine: 'other' }, { id: 'file-parser', enabled: false }, { id: 'new' }];
  expect(await embed('OPEN', 'fine', { plugins, inputs: 1 })).toMatchObject({ status: 200, ignored: 'inputs, plugins[1]=web, plugins[3]=new' });
  expect(await embed('MODERATED', 'fine')).toMatchObject({ status: 200, ignored: null });
});
