import { expect, it } from 'vitest';
import { type EndpointConfig, routerConfig } from '../config/router-config.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { worstCaseOf } from './worst-case.ts';

const prices = { prompt: '1', completion: '10' };
const searching = { ...prices, web_search: '0.01' };
const tiered = { ...prices, tiers: { flex: { prompt: '0.5', completion: '5' }, priority: { prompt: '2', completion: '20' } } };

function worstCase(endpoints: object[], fields: Partial<ChatRequest> & Record<string, unknown> = {}, maxTokens: number | null = null) {
  const { models } = routerConfig.parse({
    providers: [{ slug: 'p', kind: 'scripted' }],
    models: [{ id: 'a/one', endpoints: endpoints.map((endpoint) => ({ provider: 'p', upstream_model: 'm', ...endpoint }) as unknown as EndpointConfig) }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const request: ChatRequest = { messages: [{ role: 'user', content: 'x'.repeat(4_000) }], ...fields };
  return worstCaseOf({ request, models, defaultCompletionTokens: 4_096, maxTokens });
}

const picture = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } };
const recording = { type: 'input_audio' as const, input_audio: { data: 'A'.repeat(10_000), format: 'mp3' } };
const media = { messages: [{ role: 'user' as const, content: [picture, recording] }] };

// A prompt of 1,000 tokens costs 1,000 × 1,000 billionths.
it.each<[string, object[], Record<string, unknown>, number | null, number, number | null]>([
  ['the default of completion tokens, which then is sent', [{ prices }], {}, null, 1_000_000 + 40_960_000, 4_096],
  ['the completion tokens that are asked for', [{ prices }], { max_tokens: 100 }, null, 2_000_000, null],
  ['their newer name before the older', [{ prices }], { max_tokens: 100, max_completion_tokens: 200 }, null, 3_000_000, null],
  ['the lower of the caller’s and the call’s own ceiling', [{ prices }], { max_tokens: 500 }, 100, 2_000_000, 100],
  ['the call’s own ceiling', [{ prices }], {}, 100, 2_000_000, 100],
  ['never more than the endpoint gives', [{ prices, max_completion_tokens: 50 }], {}, 100_000, 1_500_000, 100_000],
  ['never a longer prompt than the context', [{ prices, context_length: 400 }], { max_tokens: 100 }, null, 1_400_000, null],
  ['the dearest of its endpoints', [{ prices }, { prices: { prompt: '2', completion: '20' } }], { max_tokens: 100 }, null, 4_000_000, null],
  ['no endpoint without prices', [{ prices }, {}], { max_tokens: 100 }, null, 2_000_000, null],
  ['nothing where none has prices, since none then serves it', [{}], { max_tokens: 100 }, null, 0, null],
  ['the price of a call', [{ prices: { ...prices, request: '0.01' } }], { max_tokens: 100 }, null, 12_000_000, null],
  ['the prompt as written to a cache, where that is dearer', [{ prices: { ...prices, cache_write: '1.25' } }], { max_tokens: 100 }, null, 2_250_000, null],
  [
    'the prompt as kept for an hour, where that is dearest',
    [{ prices: { ...prices, cache_write: '1.25', cache_write_1h: '2' } }],
    { max_tokens: 100 },
    null,
    3_000_000,
    null,
  ],
  [
    'all that it can answer, where it takes no limit',
    [{ prices, supported_parameters: [], max_completion_tokens: 200 }],
    { max_tokens: 100 },
    null,
    3_000_000,
    null,
  ],
  ['the tier that is asked for, where it is dearer', [{ prices: tiered }], { max_tokens: 100, service_tier: 'priority' }, null, 4_000_000, null],
  ['the plain tier, which a cheaper one may be served at', [{ prices: tiered }], { max_tokens: 100, service_tier: 'flex' }, null, 2_000_000, null],
  ['the plain tier for those who ask for it', [{ prices: tiered }], { max_tokens: 100, service_tier: 'default' }, null, 2_000_000, null],
  ['the dearest tier, where the vendor’s account decides', [{ prices: tiered }], { max_tokens: 100 }, null, 4_000_000, null],
  [
    'the dearest tier, where the tier is not sent',
    [{ prices: tiered, supported_parameters: ['max_tokens'] }],
    { max_tokens: 100, service_tier: 'default' },
    null,
    4_000_000,
    null,
  ],
  [
    'the tier of the provider’s own options',
    [{ prices: tiered }],
    { max_tokens: 100, service_tier: 'default', provider_options: { p: { service_tier: 'priority' } } },
    null,
    4_000_000,
    null,
  ],
  ['a budget of reasoning beside the default', [{ prices }], { reasoning: { max_tokens: 8_000 } }, null, 1_000_000 + 120_960_000, 12_096],
  ['a budget of reasoning within the caller’s limit', [{ prices }], { reasoning: { max_tokens: 8_000 }, max_tokens: 100 }, null, 2_000_000, null],
  ['the search of an endpoint that has a price of it', [{ prices: searching }], { max_tokens: 100, web_search_options: {} }, null, 12_000_000, null],
  [
    'no search that the endpoint is not asked for',
    [{ prices: searching, supported_parameters: ['max_tokens'] }],
    { max_tokens: 100, web_search_options: {} },
    null,
    2_000_000,
    null,
  ],
  [
    'the search that the provider’s own options ask for',
    [{ prices: searching }],
    { max_tokens: 100, provider_options: { p: { web_search_options: {} } } },
    null,
    12_000_000,
    null,
  ],
  ['one answer, as no more are asked for', [{ prices }], { max_tokens: 100, n: 3 }, null, 2_000_000, null],
  ['pictures and recordings at their price', [{ prices: { ...prices, image: '0.002', audio: '0.01' } }], { ...media, max_tokens: 100 }, null, 13_000_000, null],
  ['pictures and recordings as tokens, where they have no price', [{ prices }], { ...media, max_tokens: 100 }, null, 1_000_000 + 2_100_000, null],
  ['no more than any limit', [{ prices: { prompt: '999999999', completion: '999999999' } }], {}, null, 1_000_000_000_000_001, 4_096],
])('counts %s', (_, endpoints, fields, maxTokens, amountNano, ceiling) => {
  expect(worstCase(endpoints, fields, maxTokens)).toMatchObject({ amountNano, maxTokens: ceiling });
});

it('counts whatever a provider may read as prompt, and dense writing systems at more than a quarter of a token', () => {
  const tokens = (fields: Partial<ChatRequest>) => worstCase([{ prices: { prompt: '1', completion: '0' } }], { max_tokens: 1, ...fields }).tokens;
  const plain = tokens({});
  expect(tokens({ tools: [{ type: 'function', function: { name: 'f', description: 'x'.repeat(400) } }] })).toBeGreaterThanOrEqual(plain + 100);
  expect(tokens({ response_format: { type: 'grammar', grammar: 'x'.repeat(400) } })).toBeGreaterThanOrEqual(plain + 100);
  const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: 'x'.repeat(400) } };
  expect(tokens({ messages: [{ role: 'assistant', content: null, tool_calls: [call] }] })).toBeGreaterThanOrEqual(100);
  expect(tokens({ messages: [{ role: 'user', content: '漢'.repeat(400) }] })).toBeGreaterThanOrEqual(400);
});

it.each<[string, string[], number[][] | null, number, number]>([
  ['of texts: their prompt alone, whatever the context of one input', ['x'.repeat(4_000), 'y'.repeat(4_000)], null, 2_000_000, 2_000],
  ['of token ids: each of them', [''], [[1, 2, 3], [4]], 4_000, 4],
])('is for vectors %s', (_, texts, tokens, amountNano, count) => {
  const { models } = routerConfig.parse({
    providers: [{ slug: 'p', kind: 'scripted' }],
    models: [{ id: 'a/one', embeddings: {}, endpoints: [{ provider: 'p', upstream_model: 'm', prices, context_length: 100 }] }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const request: ChatRequest = { messages: texts.map((content) => ({ role: 'user', content })) };
  const embedding = { format: 'float' as const, dimensions: null, inputType: null, tokens };
  expect(worstCaseOf({ request, embedding, models, defaultCompletionTokens: 4_096, maxTokens: null })).toEqual({
    amountNano,
    tokens: count,
    maxTokens: null,
  });
});

it('includes a web search: its price, and what it adds to the prompt', () => {
  const amount = (prices: object, plugin: object = {}) => {
    const endpoint = { provider: 'p', upstream_model: 'm', prices: { prompt: '1', completion: '10', ...prices } } as EndpointConfig;
    const [model] = routerConfig.parse({
      providers: [{ slug: 'p', kind: 'scripted' }],
      models: [{ id: 'a/one', endpoints: [endpoint] }],
      keys: [{ id: 'k', key: '${KEY}' }],
    }).models;
    const request: ChatRequest = { messages: [{ role: 'user', content: 'x'.repeat(4_000) }], max_tokens: 100, plugins: [{ id: 'web', ...plugin }] };
    return worstCaseOf({ request, models: model ? [model] : [], defaultCompletionTokens: 1, maxTokens: null, searchEngine: { price: '0.005' } }).amountNano;
  };
  // Five results of 700 tokens each; an endpoint's own five searches of 8,000.
  expect(amount({})).toBe((1_000 + 3_500) * 1_000 + 1_000_000 + 5_000_000);
  expect(amount({}, { max_results: 1 })).toBe((1_000 + 700) * 1_000 + 1_000_000 + 5_000_000);
  expect(amount({ web_search: '0.01' })).toBe((1_000 + 40_000) * 1_000 + 1_000_000 + 50_000_000);
  expect(amount({}, { enabled: false })).toBe(2_000_000);
});

it('includes the reading of files: the marks around their text, the price of all pages that a file may have, and an estimate of a file at an address', () => {
  const file = (data: string) => ({ type: 'file' as const, file: { file_data: data } });
  const [model] = routerConfig.parse({
    providers: [{ slug: 'p', kind: 'scripted' }],
    models: [{ id: 'a/one', endpoints: [{ provider: 'p', upstream_model: 'm', prices }] }],
    keys: [{ id: 'k', key: '${KEY}' }],
  }).models;
  const amount = (content: ReturnType<typeof file>[], plugins: NonNullable<ChatRequest['plugins']>, response: { images?: string } = {}) => {
    const request: ChatRequest = { messages: [{ role: 'user', content }], max_tokens: 1, plugins };
    const ocr = { name: 'acme-ocr', price: '0.001', response };
    return worstCaseOf({ request, models: model ? [model] : [], defaultCompletionTokens: 1, maxTokens: null, ocr }).amountNano;
  };
  const engine = (name: string) => [{ id: 'file-parser' as const, pdf: { engine: name } }];
  const inside = file('data:application/pdf;base64,AA');
  const away = file('https://a.example/a.pdf');
  const off = [{ id: 'file-parser' as const, enabled: false }];
  const plain = amount([inside], off);
  const marks = 50 * 1_000;
  expect(amount([inside], engine('pdf-text')) - plain).toBe(marks);
  expect(amount([inside, inside], engine('acme-ocr')) - amount([inside, inside], off)).toBe(2 * (500 * 1_000_000 + marks));
  expect(amount([inside], engine('other-ocr')) - plain).toBe(marks);
  expect(amount([inside], engine('acme-ocr'), { images: 'images' }) - amount([inside], engine('acme-ocr'))).toBe(8 * 2_000 * 1_000);
  expect(amount([away], engine('pdf-text')) - amount([away], off)).toBe(25_000 * 1_000 + marks);
  // Also of a request that does not name the plugin.
  expect([amount([inside], []), amount([away], [])]).toEqual([amount([inside], engine('pdf-text')), amount([away], engine('pdf-text'))]);
});
