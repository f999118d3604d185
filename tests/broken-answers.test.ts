import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { begin, cut, eventsOf, openRawUpstream, type RawUpstream } from './helpers/raw-upstream.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';
import { eventData, frameOf } from './upstreams/bedrock-upstream.ts';

const WAIT = { timeout: 60_000 };
const prices = { prompt: '3', completion: '15', cached_prompt: '0.3', cache_write: '3.75', cache_write_1h: '6', web_search: '0.01' };
const [authorization, limited] = ['Bearer sk-one', 'Bearer sk-limited'];

let upstream: RawUpstream;
let router: RouterInProcess;

beforeAll(async () => {
  upstream = await openRawUpstream();
  const modelOf = (provider: string, upstream_model: string) => ({ id: `${provider}/one`, endpoints: [{ provider, upstream_model, prices }] });
  const config = {
    providers: [
      { slug: 'anthropic', name: 'Anthropic', kind: 'anthropic', base_url: upstream.url, api_key: '${UPSTREAM}' },
      { slug: 'gemini', name: 'Gemini', kind: 'gemini', base_url: upstream.url, api_key: '${UPSTREAM}' },
      { slug: 'openai', name: 'OpenAI', kind: 'openai-compatible', base_url: `${upstream.url}/v1` },
      { slug: 'responses', name: 'Responses', kind: 'responses', base_url: `${upstream.url}/v1`, api_key: '${UPSTREAM}' },
      { slug: 'bedrock', name: 'Bedrock', kind: 'bedrock', base_url: upstream.url, api_key: '${UPSTREAM}' },
    ],
    models: [
      modelOf('anthropic', 'claude-sonnet-4-5'),
      modelOf('gemini', 'gemini-2.5-pro'),
      modelOf('openai', 'gpt'),
      modelOf('responses', 'gpt'),
      modelOf('bedrock', 'some.model-v1:0'),
      { id: 'openai/short', endpoints: [{ provider: 'openai', upstream_model: 'gpt', prices, context_length: 1_000 }] },
    ],
    plugins: {
      web: {
        name: 'engine',
        url: `${upstream.url}/search`,
        price: '0.005',
        request: { query: 'query' },
        response: { results: 'results', url: 'url', title: 'title', content: 'text' },
      },
    },
    keys: [
      { id: 'one', key: '${KEY}' },
      { id: 'limited', key: '${LIMITED}', limit: '1' },
    ],
  };
  router = await openRouterInProcess({ config, variables: { KEY: 'sk-one', LIMITED: 'sk-limited', UPSTREAM: 'sk-upstream' } });
});
afterAll(async () => {
  await router.close();
  await upstream.close();
});

const messages = [{ role: 'user', content: 'hi' }];

function send(body: object, options: { authorization?: string; signal?: AbortSignal } = {}): Promise<Response> {
  const headers = { authorization: options.authorization ?? authorization, 'content-type': 'application/json' };
  return fetch(`${router.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ messages, ...body }),
    ...(options.signal && { signal: options.signal }),
  });
}

const idOf = (response: Response) => response.headers.get('x-generation-id') ?? '';

const answered = z.object({
  choices: z.array(z.object({ finish_reason: z.string(), error: z.object({ code: z.number() }).optional() })),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number(), cost: z.number() }),
});

async function whole(body: object) {
  const response = await send(body);
  const text = await response.text();
  return { id: idOf(response), ...answered.parse(JSON.parse(text)) };
}

const row = z.object({
  cost_nano: z.coerce.number(),
  record: z.object({
    tokens: z.record(z.string(), z.number()),
    estimated: z.boolean().default(false),
    nativeFinishReason: z.string().optional(),
    searches: z.number().optional(),
    attempts: z.array(z.object({ costNano: z.number() })),
  }),
});

function billed(id: string) {
  return vi.waitFor(async () => {
    const { rows } = await router.database.query('select cost_nano, record from usage_ledger where generation_id = $1', [id]);
    const { cost_nano: costNano, record } = row.parse(rows[0]);
    return { costNano, ...record };
  }, WAIT);
}

/** Reads a stream until the first text, and leaves. */
async function leave(body: object): Promise<string> {
  const leaving = new AbortController();
  const response = await send({ stream: true, ...body }, { signal: leaving.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; !text.includes('hello'); ) text += (await reader?.read())?.value ?? '';
  leaving.abort();
  return idOf(response);
}

const anthropic = {
  start: (usage: object) => ({ type: 'message_start', message: { id: 'msg_1', usage } }),
  text: (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
  end: (usage: object) => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
  stop: { type: 'message_stop' },
};
const gemini = (text: string, usageMetadata?: object, finishReason?: string) => ({
  candidates: [{ index: 0, content: { role: 'model', parts: text === '' ? [] : [{ text }] }, finishReason }],
  usageMetadata,
});
const openai = (content: string, more: object = {}, reason: string | null = null) => ({
  choices: [{ index: 0, delta: content === '' ? {} : { content }, finish_reason: reason }],
  ...more,
});

describe('an answer that breaks off costs', () => {
  const cached = { input_tokens: 4, cache_read_input_tokens: 10_000, cache_creation_input_tokens: 200, output_tokens: 1 };

  it('the prompt that Anthropic has counted at its start, by the prices of its cache, and the text that came', async () => {
    const usage = { ...cached, cache_creation: { ephemeral_1h_input_tokens: 150 } };
    upstream.replyWith((response) => cut(response, eventsOf(anthropic.start(usage), anthropic.text('hello there, you'))));
    const { id, usage: shown, choices } = await whole({ model: 'anthropic/one' });
    // 4 × 3 + 10,000 × 0.3 + 50 × 3.75 + 150 × 6 + 4 × 15, in millionths of a dollar.
    const costNano = 4_159_500;
    expect(choices).toEqual([{ finish_reason: 'error', error: { code: 502 } }]);
    expect(shown).toEqual({ prompt_tokens: 10_204, completion_tokens: 4, cost: costNano / 1e9 });
    expect(await billed(id)).toMatchObject({
      costNano,
      ...{ estimated: true, attempts: [{ costNano }] },
      tokens: { prompt: 10_204, completion: 4, cached: 10_000, cacheWrite: 200, cacheWrite1h: 150 },
    });
  });

  it('the same when Anthropic ends it with an error', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    upstream.replyWith((response) => response.end(eventsOf(anthropic.start({ input_tokens: 5_000, output_tokens: 1 }), anthropic.text('hello'), error)));
    const { id } = await whole({ model: 'anthropic/one' });
    expect(await billed(id)).toMatchObject({ tokens: { prompt: 5_000, completion: 2 }, costNano: 15_030_000 });
  });

  it('the same when its client leaves', async () => {
    upstream.replyWith((response) => begin(response, eventsOf(anthropic.start({ ...cached, input_tokens: 50_000 }), anthropic.text('hello'))));
    expect(await billed(await leave({ model: 'anthropic/one' }))).toMatchObject({ tokens: { prompt: 60_200, completion: 2, cached: 10_000 } });
  });

  it('the same when its client leaves before any content', async () => {
    // Nothing shows that the start was read: a client that leaves before is repeated.
    await vi.waitFor(async () => {
      const leaving = new AbortController();
      upstream.replyWith((response) => {
        begin(response, eventsOf(anthropic.start({ input_tokens: 6_789, output_tokens: 3 })), () => setImmediate(() => leaving.abort()));
      });
      await expect(send({ model: 'anthropic/one', stream: true }, { signal: leaving.signal }).then((response) => response.text())).rejects.toThrow();
      const { rows } = await router.database.query('select completion_tokens, cost_nano from usage_ledger where prompt_tokens = 6789');
      expect(rows[0]).toMatchObject({ completion_tokens: 3, cost_nano: 20_412_000 });
    }, WAIT);
  });

  it('what Gemini has counted last, with its hidden thoughts', async () => {
    const counts = (candidatesTokenCount: number) => ({
      promptTokenCount: 50_000,
      cachedContentTokenCount: 49_000,
      candidatesTokenCount,
      thoughtsTokenCount: 700,
    });
    const chunks = [2, 4, 6, 8].map((count) => gemini('hello word ', counts(count)));
    upstream.replyWith((response) => cut(response, eventsOf(...chunks)));
    const { id } = await whole({ model: 'gemini/one' });
    // 1,000 × 3 + 49,000 × 0.3 + 708 × 15
    const tokens = { prompt: 50_000, completion: 708, cached: 49_000, reasoning: 700 };
    expect(await billed(id)).toMatchObject({ tokens, costNano: 28_320_000, estimated: false });
    upstream.replyWith((response) => begin(response, eventsOf(...chunks)));
    expect(await billed(await leave({ model: 'gemini/one' }))).toMatchObject({ tokens: { prompt: 50_000, cached: 49_000, reasoning: 700 } });
  });

  it('no less than what came of it, where the upstream has stated its usage before', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 0 };
    upstream.replyWith((response) => cut(response, eventsOf(openai('', { usage }), openai('y'.repeat(4_000)))));
    const { id } = await whole({ model: 'openai/one' });
    expect(await billed(id)).toMatchObject({ tokens: { prompt: 100, completion: 1_000 }, costNano: 15_300_000, estimated: true });
  });

  it('its prompt as it was reserved, where the upstream has counted nothing: with tools and pictures', async () => {
    upstream.replyWith((response) => cut(response, eventsOf(openai('hello'))));
    const tools = [{ type: 'function', function: { name: 'f', description: 'x'.repeat(40_000), parameters: { type: 'object' } } }];
    const described = await billed((await whole({ model: 'openai/one', tools })).id);
    expect(described.tokens).toMatchObject({ prompt: Math.ceil((JSON.stringify(tools).length + 2) / 4), completion: 2 });
    const picture = { type: 'image_url', image_url: { url: 'https://pictures.test/a.png' } };
    const seen = await billed((await whole({ model: 'openai/one', messages: [{ role: 'user', content: [picture] }] })).id);
    expect(seen.tokens).toMatchObject({ prompt: 2_000 });
    const wide = await billed((await whole({ model: 'openai/one', messages: [{ role: 'user', content: '漢'.repeat(1_000) }] })).id);
    expect(wide.tokens).toMatchObject({ prompt: 1_250 });
    const most = await billed((await whole({ model: 'openai/short', max_tokens: 9, messages: [{ role: 'user', content: 'x'.repeat(4_500) }] })).id);
    expect(most.tokens, 'no more than the context').toMatchObject({ prompt: 1_000 });
  });

  it('the searches that the provider has made', async () => {
    const search = { type: 'response.output_item.done', output_index: 0, item: { type: 'web_search_call', id: 'ws_1', action: { type: 'search' } } };
    const text = { type: 'response.output_text.delta', delta: 'hello' };
    upstream.replyWith((response) => cut(response, eventsOf({ type: 'response.created', response: { id: 'r' } }, search, search, text)));
    const { id } = await whole({ model: 'responses/one', plugins: [{ id: 'web' }] });
    expect(await billed(id)).toMatchObject({ searches: 2, tokens: { prompt: 1, completion: 2 }, costNano: 20_033_000 });
  });

  it('what ends the credit of its key, as the provider charges it', async () => {
    upstream.replyWith((response) => begin(response, eventsOf(anthropic.start({ input_tokens: 100_000, output_tokens: 1 }), anthropic.text('hello'))));
    const leaving = () => {
      const controller = new AbortController();
      return { controller, response: send({ model: 'anthropic/one', stream: true, max_tokens: 10 }, { authorization: limited, signal: controller.signal }) };
    };
    for (let call = 1; call <= 4; call += 1) {
      const { controller, response } = leaving();
      const { status, headers, body } = await response;
      expect(status).toBe(200);
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ''; !text.includes('hello'); ) text += (await reader?.read())?.value ?? '';
      controller.abort();
      expect(await billed(headers.get('x-generation-id') ?? '')).toMatchObject({ costNano: 300_030_000 });
    }
    expect((await send({ model: 'anthropic/one', max_tokens: 10 }, { authorization: limited })).status).toBe(402);
  });
});

it('the interim record of a stream has what its provider had counted, and what the router has searched for', async () => {
  const usage = { prompt_tokens: 20_000, completion_tokens: 0 };
  upstream.replyWith((response, path) => {
    if (path !== '/search') begin(response, eventsOf(openai('', { usage }), openai('hello')));
    else
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results: [{ url: 'https://a.test/', title: 't', text: 'page' }] }));
  });
  const leaving = new AbortController();
  const response = await send({ model: 'openai/one', stream: true, plugins: [{ id: 'web' }] }, { signal: leaving.signal });
  const found = await vi.waitFor(async () => {
    const { rows } = await router.database.query<{ record: object }>('select record from interim_records where generation_id = $1', [idOf(response)]);
    expect(rows).toHaveLength(1);
    return rows[0]?.record;
  }, WAIT);
  // 20,000 × 3 + 2 × 15, in millionths of a dollar, and a search.
  const costNano = 60_030_000 + 5_000_000;
  const searched = { searches: 1, searchEngine: 'engine', searchResults: 1 };
  expect(found).toMatchObject({ costNano, ...searched, tokens: { prompt: 20_000, completion: 2 } });
  leaving.abort();
  expect(await billed(idOf(response))).toMatchObject({ costNano, searches: 1 });
});

describe('counts that no model has', () => {
  it.each([
    ['openai', eventsOf(openai('hello', {}, 'stop'), { choices: [], usage: { prompt_tokens: Number.MAX_SAFE_INTEGER, completion_tokens: 5 } })],
    [
      'anthropic',
      eventsOf(anthropic.start({ input_tokens: 1e15, output_tokens: 1 }), anthropic.text('hello'), anthropic.end({ output_tokens: 1e15 }), anthropic.stop),
    ],
    ['gemini', eventsOf(gemini('hello', { promptTokenCount: 1e15, candidatesTokenCount: 5 }, 'STOP'))],
    [
      'responses',
      eventsOf(
        { type: 'response.output_text.delta', delta: 'hello' },
        { type: 'response.completed', response: { status: 'completed', usage: { input_tokens: 1e15, output_tokens: 5 } } },
      ),
    ],
  ])('are as none at %s: the call is billed by an estimate', async (provider, events) => {
    upstream.replyWith((response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events));
    const { id, usage } = await whole({ model: `${provider}/one` });
    expect(usage).toEqual({ prompt_tokens: 1, completion_tokens: 2, cost: 0.000_033 });
    expect(await billed(id)).toMatchObject({ costNano: 33_000, estimated: true });
  });
});

describe('an answer that its provider ends with the reason "error" is free', () => {
  const text = 'y'.repeat(400);
  const usage = { prompt_tokens: 100, completion_tokens: 1_000 };
  const counts = { promptTokenCount: 100, candidatesTokenCount: 1_000 };
  const failed = { status: 'failed', error: { code: 'server_error', message: 'no' }, usage: { input_tokens: 100, output_tokens: 1_000 } };
  const events = (...values: readonly object[]) => ({ bytes: eventsOf(...values), type: 'text/event-stream' });

  it.each([
    ['openai', 'error', 100, events(openai(text), openai('', { usage }, 'error'))],
    ['openai', 'error', 100, events(openai(text), openai('', { usage, error: { code: 502, message: 'no' } }, 'error'))],
    ['gemini', 'MALFORMED_FUNCTION_CALL', 100, events(gemini(text), gemini('', counts, 'MALFORMED_FUNCTION_CALL'))],
    ['responses', 'failed', 100, events({ type: 'response.output_text.delta', delta: text }, { type: 'response.failed', response: failed })],
    [
      ...(['bedrock', 'malformed_tool_use', 1] as const),
      {
        bytes: Buffer.concat(
          [eventData('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }), eventData('messageStop', { stopReason: 'malformed_tool_use' })].map(
            frameOf,
          ),
        ),
        type: 'application/vnd.amazon.eventstream',
      },
    ],
  ])('at %s: %s', async (provider, reason, prompt, { bytes, type }) => {
    upstream.replyWith((response) => response.writeHead(200, { 'content-type': type }).end(bytes));
    const { id, usage: shown, choices } = await whole({ model: `${provider}/one` });
    expect(choices).toEqual([{ finish_reason: 'error', error: { code: 502 } }]);
    expect(shown).toMatchObject({ prompt_tokens: prompt, cost: 0 });
    expect(await billed(id)).toMatchObject({ costNano: 0, nativeFinishReason: reason, tokens: { prompt }, attempts: [{ costNano: expect.any(Number) }] });
    const generation = await fetch(`${router.url}/api/v1/generation?id=${id}`, { headers: { authorization } });
    expect(await generation.json()).toMatchObject({ data: { total_cost: 0 } });
  });

  it('but one that breaks off behind an error without that reason is not', async () => {
    upstream.replyWith((response) => response.end(eventsOf(openai(text), { error: { code: 502, message: 'no' }, usage })));
    const { id } = await whole({ model: 'openai/one' });
    expect(await billed(id)).toMatchObject({ costNano: 15_300_000, tokens: { prompt: 100, completion: 1_000 } });
  });
});

describe('a whole answer costs', () => {
  it('what Anthropic counts at its end', async () => {
    const end = anthropic.end({ input_tokens: 12, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 7 });
    upstream.replyWith((response) =>
      response.end(eventsOf(anthropic.start({ input_tokens: 9_000, output_tokens: 1 }), anthropic.text('y'.repeat(400)), end, anthropic.stop)),
    );
    const { id, usage } = await whole({ model: 'anthropic/one' });
    expect(usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 7 });
    expect(await billed(id)).toMatchObject({ tokens: { prompt: 12, completion: 7 }, estimated: false });
  });

  it('the prompt that Anthropic has counted at its start, where its end has no counts', async () => {
    const events = [anthropic.start({ input_tokens: 9_000, output_tokens: 1 }), anthropic.text('y'.repeat(400)), anthropic.end({}), anthropic.stop];
    upstream.replyWith((response) => response.end(eventsOf(...events)));
    const { id } = await whole({ model: 'anthropic/one' });
    expect(await billed(id)).toMatchObject({ tokens: { prompt: 9_000, completion: 100 }, estimated: true });
  });
});
