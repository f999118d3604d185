import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { type EngineServer, openEngineServer } from './engine-server.ts';
import { openLoopbackUpstream, type RecordingUpstream } from './loopback-upstream.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

/** A vendor that has searched: its events as its API sends them. */
function searching(basePath: string, events: object[], endMark: object | null): Promise<RecordingUpstream> {
  return openLoopbackUpstream({
    basePath,
    eventsOf: () => events.map((event) => ({ data: JSON.stringify(event), kind: 'rest' as const })),
    endMark: endMark === null ? null : JSON.stringify(endMark),
    lateUsage: '{}',
    wholeAnswer: () => ({}),
    refusalBody: () => ({}),
    errorEvent: () => '{}',
    malformed: '{',
  });
}

const BERN = { type: 'approximate', city: 'Bern', country: 'CH' };
const TEXT = 'It is raining.';
const PAGE = { url: 'https://weather.example/today', title: 'Weather' };

const claudeEvents = [
  { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 100, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"query":"weather"}' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'content_block_start',
    index: 1,
    content_block: { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result', ...PAGE }] },
  },
  { type: 'content_block_stop', index: 1 },
  { type: 'content_block_start', index: 2, content_block: { type: 'text', text: '', citations: null } },
  { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'So: ' } },
  { type: 'content_block_stop', index: 2 },
  { type: 'content_block_start', index: 3, content_block: { type: 'text', text: '', citations: [] } },
  { type: 'content_block_delta', index: 3, delta: { type: 'citations_delta', citation: { type: 'web_search_result_location', ...PAGE, cited_text: 'rain' } } },
  { type: 'content_block_delta', index: 3, delta: { type: 'text_delta', text: TEXT } },
  { type: 'content_block_stop', index: 3 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 20, server_tool_use: { web_search_requests: 2 } } },
];
const responsesEvents = [
  { type: 'response.created', response: { id: 'resp_1', object: 'response', status: 'in_progress' } },
  { type: 'response.output_item.added', output_index: 0, item: { type: 'web_search_call', id: 'ws_1', status: 'in_progress' } },
  {
    type: 'response.output_item.done',
    output_index: 0,
    item: { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'weather' } },
  },
  {
    type: 'response.output_item.done',
    output_index: 1,
    item: { type: 'web_search_call', id: 'ws_2', status: 'completed', action: { type: 'open_page', url: PAGE.url } },
  },
  { type: 'response.output_item.added', output_index: 2, item: { type: 'message', id: 'msg_1', content: [] } },
  { type: 'response.output_text.delta', output_index: 2, delta: `So: ${TEXT}`, logprobs: [] },
  { type: 'response.output_text.annotation.added', output_index: 2, annotation: { type: 'url_citation', ...PAGE, start_index: 4, end_index: 18 } },
  { type: 'response.completed', response: { id: 'resp_1', object: 'response', status: 'completed', usage: { input_tokens: 100, output_tokens: 20 } } },
];
const geminiEvents = [
  { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: `So: ${TEXT}` }] } }], responseId: 'r' },
  {
    candidates: [
      {
        index: 0,
        content: { role: 'model', parts: [] },
        finishReason: 'STOP',
        groundingMetadata: {
          webSearchQueries: ['weather', 'rain today'],
          groundingChunks: [{ web: { uri: PAGE.url, title: PAGE.title } }],
          groundingSupports: [{ segment: { startIndex: 4, endIndex: 18, text: TEXT }, groundingChunkIndices: [0] }],
        },
      },
    ],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20 },
  },
];

let engine: EngineServer;
let claude: RecordingUpstream;
let openai: RecordingUpstream;
let google: RecordingUpstream;
let plain: OpenAiUpstream;
let worker: Awaited<ReturnType<typeof openPluginWorker>>;
let bare: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  engine = await openEngineServer('/search', () => ({ results: [{ ...PAGE, content: 'rain' }] }));
  claude = await searching('', claudeEvents, { type: 'message_stop' });
  openai = await searching('', responsesEvents, null);
  google = await searching('', geminiEvents, null);
  plain = await openOpenAiUpstream();
  const prices = { prompt: '0', completion: '0', web_search: '0.01' };
  const setup = {
    providers: [
      { slug: 'claude', name: 'Claude', kind: 'anthropic', base_url: claude.baseUrl, api_key: '${A_KEY}' },
      { slug: 'openai', name: 'OpenAI', kind: 'responses', base_url: openai.baseUrl },
      { slug: 'google', name: 'Google', kind: 'gemini', base_url: google.baseUrl, api_key: '${A_KEY}' },
      { slug: 'plain', name: 'Plain', kind: 'openai-compatible', base_url: plain.baseUrl },
    ],
    models: [
      ...['claude', 'openai', 'google'].map((provider) => ({ id: `x/${provider}`, endpoints: [{ provider, upstream_model: 'm', prices }] })),
      { id: 'x/plain', endpoints: [{ provider: 'plain', upstream_model: 'm', prices }] },
      { id: 'x/mute', endpoints: [{ provider: 'claude', upstream_model: 'm', prices: { prompt: '0', completion: '0' }, native_search: false }] },
      {
        id: 'x/both',
        endpoints: [
          { provider: 'plain', upstream_model: 'm' },
          { provider: 'claude', upstream_model: 'm' },
        ],
      },
    ],
    environment: { A_KEY: 'sk-a' },
  };
  worker = await openPluginWorker({ ...setup, plugins: { web: { name: 'acme', url: engine.url, price: '0.002' } } });
  bare = await openPluginWorker({ ...setup, plugins: {} });
});

afterAll(async () => {
  await Promise.all([worker.close(), bare.close()]);
  await Promise.all([engine.close(), claude.close(), openai.close(), google.close(), plain.close()]);
});

const messages: ChatRequest['messages'] = [{ role: 'user', content: 'How is the weather?' }];
const asking = (model: string, fields: object = {}, others: Partial<ChatRequest> = {}): Partial<ChatRequest> => ({
  model,
  messages,
  plugins: [{ id: 'web', ...fields }],
  ...others,
});
const upstreams = { claude: () => claude, openai: () => openai, google: () => google };
const tool: NonNullable<ChatRequest['tools']>[number] = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };

describe('router-facts 6.2: search by the endpoint itself', () => {
  it.each<[keyof typeof upstreams, object, number, object]>([
    ['claude', { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }] }, 2, { content: 'rain', start_index: 4, end_index: 18 }],
    ['openai', { tools: [{ type: 'web_search' }], max_tool_calls: 5 }, 1, { start_index: 4, end_index: 18 }],
    ['google', { tools: [{ googleSearch: {} }] }, 2, { start_index: 4, end_index: 18 }],
  ])('is used of %s where no engine is named, and counted, priced and cited, whole and streamed', async (name, sent, searches, range) => {
    const asked = engine.requests.length;
    const citation = { type: 'url_citation', url_citation: { ...PAGE, ...range } };
    const usage = { cost: searches * 0.01, server_tool_use: { web_search_requests: searches } };
    const { status, body } = await worker.whole(asking(`x/${name}`));
    expect([status, body]).toMatchObject([200, { choices: [{ message: { content: `So: ${TEXT}`, annotations: [citation] } }], usage }]);
    expect(upstreams[name]().requests.at(-1)?.body).toMatchObject(sent);
    expect(await worker.recordOfLast()).toMatchObject({ searches, searchEngine: 'native', costNano: searches * 10_000_000 });
    const chunks = await worker.stream(asking(`x/${name}`, { engine: 'native' }));
    expect(chunks.flatMap(({ choices }) => (choices as { delta: { annotations?: object[] } }[]).flatMap(({ delta }) => delta.annotations ?? []))).toEqual([
      citation,
    ]);
    expect(chunks.at(-1)).toMatchObject({ usage });
    expect(engine.requests).toHaveLength(asked);
  });

  it('is not asked for by other requests', async () => {
    for (const name of ['claude', 'openai', 'google'] as const) {
      await worker.whole({ model: `x/${name}`, messages });
      expect(upstreams[name]().requests.at(-1)?.body).not.toHaveProperty('tools');
    }
  });

  it.each<[keyof typeof upstreams, object, object]>([
    ['claude', { include_domains: ['a.example'], user_location: BERN }, { allowed_domains: ['a.example'], user_location: BERN }],
    ['claude', { exclude_domains: ['b.example'] }, { blocked_domains: ['b.example'] }],
    ['openai', { include_domains: ['a.example'], user_location: BERN }, { filters: { allowed_domains: ['a.example'] }, user_location: BERN }],
  ])('is limited by %s to %j', async (name, limits, sent) => {
    expect((await worker.whole(asking(`x/${name}`, { engine: 'native', ...limits }))).status).toBe(200);
    expect(upstreams[name]().requests.at(-1)?.body).toMatchObject({ tools: [sent] });
  });

  it('is of the endpoint that takes its limits, and refused where none does', async () => {
    // The engine takes none of them, and neither do two of the three.
    const limits = { exclude_domains: ['b.example'] };
    expect((await worker.whole(asking('x/both', limits))).body).toMatchObject({ provider: 'Claude' });
    for (const [model, opened] of [
      ['x/google', worker],
      ['x/openai', worker],
      ['x/plain', worker],
      ['x/google', bare],
    ] as const) {
      const { status, body } = await opened.whole(asking(model, limits));
      expect([status, body.error]).toMatchObject([400, { param: 'plugins[0].exclude_domains' }]);
      const forced = await opened.whole(asking(model, { ...limits, engine: 'native' }));
      expect(forced.status).toBe(400);
    }
  });

  it('leaves out tools of the caller nowhere, and gives way to the engine where an API takes only one of both', async () => {
    await worker.whole(asking('x/claude', {}, { tools: [tool] }));
    expect(claude.requests.at(-1)?.body).toMatchObject({ tools: [{ name: 'f' }, { name: 'web_search' }] });
    await worker.whole(asking('x/openai', {}, { tools: [tool] }));
    expect(openai.requests.at(-1)?.body).toMatchObject({ tools: [{ name: 'f' }, { type: 'web_search' }] });
    const asked = engine.requests.length;
    await worker.whole(asking('x/google', {}, { tools: [tool] }));
    expect(google.requests.at(-1)?.body).toMatchObject({ tools: [{ functionDeclarations: [{ name: 'f' }] }] });
    expect(engine.requests).toHaveLength(asked + 1);
  });

  it.each(['x/plain', 'x/mute'])('is the engine for %s, whose endpoint can not', async (model) => {
    const asked = engine.requests.length;
    expect(await worker.whole(asking(model))).toMatchObject({ status: 200, body: { usage: { cost: 0.002 } } });
    expect(engine.requests).toHaveLength(asked + 1);
  });

  it.each(['x/plain', 'x/mute'])('is refused when "native" is asked of %s, and without an engine', async (model) => {
    expect(await worker.whole(asking(model, { engine: 'native' }))).toMatchObject({ status: 400, body: { error: { param: 'plugins[0].engine' } } });
    expect(await bare.whole(asking(model))).toMatchObject({ status: 400, body: { error: { param: 'plugins[0]' } } });
  });

  it('leaves out endpoints that can not, where it is asked for or nothing else is there', async () => {
    expect(await worker.whole(asking('x/both', { engine: 'native' }))).toMatchObject({ status: 200, body: { provider: 'Claude' } });
    expect(await bare.whole(asking('x/both'))).toMatchObject({ status: 200, body: { provider: 'Claude' } });
  });

  it('is left to the engine by a request that names it', async () => {
    const asked = engine.requests.length;
    await worker.whole(asking('x/claude', { engine: 'acme' }));
    expect(claude.requests.at(-1)?.body).not.toHaveProperty('tools');
    expect(engine.requests).toHaveLength(asked + 1);
  });
});
