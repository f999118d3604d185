import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { type EngineFault, type EngineServer, openEngineServer } from './engine-server.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

const WAIT = { timeout: 60_000, interval: 5 };
const plugins = [{ id: 'moderation' as const }];
const LONG = `${'a'.repeat(48)}${'forbidden '.repeat(20)}${'z'.repeat(49)}`;

let engine: EngineServer;
let upstream: OpenAiUpstream;
let other: OpenAiUpstream;
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  engine = await openEngineServer('/v1/moderations', (body) => {
    const { input } = body as { input: string[] };
    return {
      id: 'modr-1',
      model: 'm',
      results: input.map((text) => ({ flagged: text.includes('forbidden'), categories: { violence: text.includes('forbidden'), hate: false } })),
    };
  });
  upstream = await openOpenAiUpstream();
  other = await openOpenAiUpstream();
  worker = await openPluginWorker({
    providers: [
      { slug: 'first', name: 'First', kind: 'openai-compatible', base_url: upstream.baseUrl },
      { slug: 'second', name: 'Second', kind: 'openai-compatible', base_url: other.baseUrl },
    ],
    models: [
      { id: 'a/one', endpoints: [{ provider: 'first', upstream_model: 'one' }] },
      { id: 'b/two', endpoints: [{ provider: 'second', upstream_model: 'two' }] },
    ],
    plugins: {
      moderation: {
        name: 'acme-moderation',
        endpoint: { url: engine.url, api_key: '${ENGINE_KEY}', model: 'guard-1', timeout_ms: 5_000 },
        patterns: [{ reason: 'secrets', pattern: 'BEGIN (RSA )?PRIVATE KEY', ignore_case: true }],
      },
    },
    environment: { ENGINE_KEY: 'sk-engine' },
  });
});

afterAll(async () => {
  await worker.close();
  await Promise.all([engine.close(), upstream.close(), other.close()]);
});

beforeEach(() => {
  engine.fault = null;
  upstream.answer({});
  other.answer({});
});

const asking = (messages: ChatRequest['messages'], fields: Partial<ChatRequest> = {}) => ({ model: 'a/one', models: ['b/two'], plugins, messages, ...fields });

describe('router-facts 6.1: moderation', () => {
  it('sends what passes to the provider, after the endpoint has seen it under the key and model of the configuration', async () => {
    const { status, body } = await worker.whole(asking([{ role: 'user', content: 'a friendly text' }]));
    expect([status, body.error]).toEqual([200, undefined]);
    expect(engine.requests.at(-1)).toMatchObject({ headers: { authorization: 'Bearer sk-engine' }, body: { model: 'guard-1', input: ['a friendly text'] } });
  });

  it.each<[string, Partial<ChatRequest>]>([
    ['the prompt of a search', { plugins: [...plugins, { id: 'web', search_prompt: LONG }] }],
    ['the name of a message', { messages: [{ role: 'user', name: LONG, content: 'hi' }] }],
    ['the description of a tool', { tools: [{ type: 'function', function: { name: 'find', description: LONG } }] }],
    ['the description of a format', { response_format: { type: 'json_schema', json_schema: { name: 'a', description: LONG, schema: {} } } }],
    ['a prediction', { prediction: { type: 'content', content: [{ type: 'text', text: LONG }] } }],
  ])('refuses a flagged text as %s', async (_, fields) => {
    const sent = upstream.requests.length;
    const { status } = await worker.whole(asking([{ role: 'user', content: 'hi' }], fields));
    expect(status).toBe(403);
    expect(upstream.requests).toHaveLength(sent);
  });

  it.each<[string, ChatRequest['messages']]>([
    ['user', [{ role: 'user', content: LONG }]],
    [
      'system',
      [
        { role: 'system', content: LONG },
        { role: 'user', content: 'hi' },
      ],
    ],
    [
      'developer',
      [
        { role: 'developer', content: [{ type: 'text', text: LONG }] },
        { role: 'user', content: 'hi' },
      ],
    ],
    [
      'tool',
      [
        { role: 'user', content: 'hi' },
        { role: 'tool', content: LONG, tool_call_id: 'c' },
      ],
    ],
    [
      'user, in parts',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'text', text: LONG },
          ],
        },
      ],
    ],
  ])('DESIGN 8: refuses a flagged text of the role %s before any provider, without a fallback', async (_, messages) => {
    const asked = upstream.requests.length + other.requests.length;
    const { status, body } = await worker.whole(asking(messages));
    expect(status).toBe(403);
    expect(body.error).toEqual({
      code: 403,
      message: 'The input was flagged by moderation',
      type: 'content_policy_violation',
      param: '',
      metadata: {
        error_type: 'content_policy_violation',
        reasons: ['violence'],
        flagged_input: `${'a'.repeat(48)}...${'z'.repeat(49)}`,
        provider_name: 'acme-moderation',
        model_slug: 'a/one',
      },
    });
    const [chunk] = await worker.stream(asking(messages));
    expect(chunk?.error).toMatchObject({ code: 403, metadata: { reasons: ['violence'], provider_name: 'acme-moderation', model_slug: 'a/one' } });
    expect(upstream.requests.length + other.requests.length).toBe(asked);
  });

  it('refuses what a pattern matches without a request to the endpoint', async () => {
    const asked = engine.requests.length;
    const { status, body } = await worker.whole(asking([{ role: 'user', content: '-----Begin rsa private key-----' }]));
    expect([status, body.error]).toMatchObject([403, { metadata: { reasons: ['secrets'], flagged_input: '-----Begin rsa private key-----' } }]);
    expect(engine.requests).toHaveLength(asked);
  });

  it("leaves the model's own words alone, and everything where it is not asked for or switched off", async () => {
    const said: ChatRequest['messages'] = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: LONG },
      { role: 'user', content: 'go on' },
    ];
    expect((await worker.whole(asking(said))).status).toBe(200);
    const asked = engine.requests.length;
    const flagged: ChatRequest['messages'] = [{ role: 'user', content: LONG }];
    expect((await worker.whole(asking(flagged, { plugins: [] }))).status).toBe(200);
    expect((await worker.whole(asking(flagged, { plugins: [{ id: 'moderation', enabled: false }] }))).status).toBe(200);
    expect(engine.requests).toHaveLength(asked);
  });

  it.each<EngineFault>(['silent', 'error', 'not-json', 'other-json', 'huge', 'redirect', 'hang-up', 'cut'])(
    'DESIGN 8: is 503 when the endpoint fails (%s): no text passes unseen',
    async (fault) => {
      const asked = upstream.requests.length + other.requests.length;
      engine.fault = fault;
      const { status, body } = await worker.whole(asking([{ role: 'user', content: 'a friendly text' }]));
      expect([status, body.error]).toMatchObject([503, { type: 'provider_unavailable', message: expect.stringContaining("acme-moderation can't be used") }]);
      expect(JSON.stringify(body)).not.toContain('sk-engine');
      expect(upstream.requests.length + other.requests.length).toBe(asked);
      expect(engine.followed).toBe(0);
    },
  );

  it('ends its request when the call is aborted', async () => {
    engine.fault = 'silent';
    const { aborts } = engine;
    const { length } = engine.requests;
    const call = await worker.begin(asking([{ role: 'user', content: 'hi' }]));
    await vi.waitFor(() => expect(engine.requests.length).toBe(length + 1), WAIT);
    call.abort();
    expect(await call.ended()).toMatchObject({ kind: 'body', status: 408 });
    await vi.waitFor(() => expect(engine.aborts).toBe(aborts + 1), WAIT);
  });

  it('checks long texts in pieces, and refuses those that are too long to be checked', async () => {
    const { length } = engine.requests;
    const long = `${'word '.repeat(40_000)}forbidden`;
    expect((await worker.whole(asking([{ role: 'user', content: long }]))).status).toBe(403);
    expect(engine.requests.length).toBeGreaterThan(length + 1);
    const tooLong = await worker.whole(asking([{ role: 'user', content: 'x'.repeat(2 * 1_024 * 1_024 + 1) }]));
    expect([tooLong.status, tooLong.body.error]).toMatchObject([413, { param: 'messages' }]);
  });
});

describe('router-facts 6: a default of the account', () => {
  it('is applied to requests that do not name the plugin, and switched off by those that do so with enabled: false', async () => {
    const setup = {
      providers: [{ slug: 'first', name: 'First', kind: 'openai-compatible', base_url: upstream.baseUrl }],
      models: [{ id: 'a/one', endpoints: [{ provider: 'first', upstream_model: 'one' }] }],
      plugins: { moderation: { patterns: [{ reason: 'r', pattern: 'forbidden' }] } },
      account: { plugins: [{ id: 'moderation' }] },
    };
    const strict = await openPluginWorker(setup);
    const messages: ChatRequest['messages'] = [{ role: 'user', content: 'forbidden' }];
    try {
      expect((await strict.whole({ messages })).status).toBe(403);
      expect((await strict.whole({ messages, plugins: [{ id: 'moderation', enabled: false }] })).status).toBe(200);
    } finally {
      await strict.close();
    }
  });
});

describe("router-facts 6.1: a provider's own refusal of the input", () => {
  const refuse = { status: 403, code: 'content_policy_violation', message: 'not that' };

  it('has the same metadata with the name of the provider, and the error of the provider', async () => {
    upstream.answer({ refuse });
    const { status, body } = await worker.whole({ model: 'a/one', messages: [{ role: 'user', content: LONG }] });
    expect(status).toBe(403);
    expect(body.error).toMatchObject({
      message: 'First: not that',
      metadata: {
        reasons: ['content_policy_violation'],
        flagged_input: `${'a'.repeat(48)}...${'z'.repeat(49)}`,
        provider_name: 'First',
        model_slug: 'a/one',
        provider_status: 403,
        raw: { message: 'not that' },
      },
    });
  });

  it('falls back to other models, as the refusal of the plugin does not', async () => {
    upstream.answer({ refuse });
    expect(await worker.whole({ model: 'a/one', models: ['b/two'], messages: [{ role: 'user', content: LONG }] })).toMatchObject({
      status: 200,
      body: { model: 'b/two' },
    });
  });
});
