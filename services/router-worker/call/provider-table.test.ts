import { describe, expect, it } from 'vitest';
import { accountRulesOf } from '#shared/config/account-rules.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { noProvider } from './decision.ts';
import type { EndpointHealth, HealthView } from './health-view.ts';
import { chosen } from './test-support/chosen.ts';

type Provider = NonNullable<ChatRequest['provider']>;

const policy = (trains: boolean, retains: boolean) => ({ data_policy: { trains, retains } });
const base = { kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' };

/**
 * One model at five places, each with what the rows below distinguish. `east` and its variant differ in speed alone; `west` is cheap and trains, `north` keeps
 * nothing and is dear, nothing is known of `south`.
 */
const config = routerConfig.parse({
  providers: [
    { ...base, slug: 'east', ...policy(false, true) },
    { ...base, slug: 'west', ...policy(true, false) },
    { ...base, slug: 'north', ...policy(false, false) },
    { ...base, slug: 'south' },
    { slug: 'local', kind: 'scripted' },
  ],
  models: [
    {
      id: 'a/one',
      order: 'file',
      endpoints: [
        { provider: 'east', upstream_model: 'm', prices: { prompt: '2', completion: '4' }, quantization: 'fp8', supported_parameters: ['temperature'] },
        { provider: 'east', tag: 'east/turbo', upstream_model: 'm', prices: { prompt: '2', completion: '5' }, quantization: 'fp8', context_length: 100_000 },
        { provider: 'west', upstream_model: 'm', prices: { prompt: '1', completion: '2', request: '0.01' }, quantization: 'int4', context_length: 8_000 },
        {
          provider: 'north',
          upstream_model: 'm',
          prices: { prompt: '10', completion: '30', image: '0.02', audio: '0.03', web_search: '0.01' },
          modalities: ['image', 'audio'],
        },
        { provider: 'south', upstream_model: 'm' },
      ],
    },
    { id: 'b/two', order: 'file', endpoints: [{ provider: 'local', upstream_model: 'm', prices: { prompt: '0', completion: '0' } }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const ALL = ['east', 'east/turbo', 'west', 'north', 'south'];

const alike = (value: number | null) => (value === null ? null : { p50: value, p75: value, p90: value, p99: value });
const speeds: Record<string, [tokensPerSecond: number | null, firstTokenSeconds: number | null]> = {
  east: [40, 1],
  'east/turbo': [120, 0.3],
  west: [60, 2],
  north: [20, 0.5],
  local: [500, 0.1],
};
const health: HealthView = {
  of: ({ tag }): EndpointHealth => {
    const [tokens, seconds] = speeds[tag] ?? [null, null];
    const tokensPerSecond = tag === 'east/turbo' ? { p50: 120, p75: 80, p90: 40, p99: 20 } : alike(tokens);
    // One in ten requests has a slow start at the variant.
    const firstTokenSeconds = tag === 'east/turbo' ? { p50: 0.3, p75: 0.4, p90: 3, p99: 4 } : alike(seconds);
    return { isHealthy: true, isOpen: false, tokensPerSecond, firstTokenSeconds };
  },
};

function tagsOf(request: Partial<ChatRequest>, circumstances: object = {}): string[] {
  const { candidates, decision } = chosen(config, { model: 'a/one', ...request }, {}, { health, ...circumstances });
  if (candidates.length === 0) throw noProvider(decision);
  return candidates.map(({ id }) => id.slice(id.indexOf('@') + 1));
}

const content = (...items: object[]) => ({ messages: [{ role: 'user', content: items }] }) as Pick<ChatRequest, 'messages'>;
const picture = { type: 'image_url', image_url: { url: 'https://a.test/x.png' } };
const recording = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
const text = { type: 'text', text: 'what is it?' };
const web = (fields: object = {}) => ({ plugins: [{ id: 'web' as const, ...fields }] });

/** Every row of the contract's table `provider`: the field, a request, and the endpoints that serve it in order. */
const rows: readonly [field: keyof Provider | 'none', request: Partial<ChatRequest> & { provider?: Provider }, tags: readonly string[]][] = [
  ['none', {}, ALL],
  ['allow_fallbacks', { provider: { allow_fallbacks: true } }, ALL],
  ['allow_fallbacks', { provider: { allow_fallbacks: null } }, ALL],
  ['allow_fallbacks', { provider: { allow_fallbacks: false } }, ['east']],
  ['allow_fallbacks', { provider: { allow_fallbacks: false, order: ['west', 'east/turbo'] } }, ['west', 'east/turbo']],
  ['allow_fallbacks', { provider: { allow_fallbacks: false, sort: 'latency' } }, ['east/turbo']],
  ['require_parameters', { seed: 1, provider: { require_parameters: true } }, ['east/turbo', 'west', 'north', 'south']],
  ['require_parameters', { seed: 1, provider: { require_parameters: false } }, ALL],
  ['data_collection', { provider: { data_collection: 'allow' } }, ALL],
  ['data_collection', { provider: { data_collection: 'deny' } }, ['north']],
  ['zdr', { provider: { zdr: true } }, ['west', 'north']],
  ['zdr', { provider: { zdr: false } }, ALL],
  ['zdr', { provider: { zdr: null } }, ALL],
  ['enforce_distillable_text', { models: ['b/two'], provider: { enforce_distillable_text: true } }, ['local']],
  ['enforce_distillable_text', { provider: { enforce_distillable_text: false } }, ALL],
  ['order', { provider: { order: ['north', 'west'] } }, ['north', 'west', 'east', 'east/turbo', 'south']],
  ['order', { provider: { order: ['elsewhere', 'west'] } }, ['west', 'east', 'east/turbo', 'north', 'south']],
  ['order', { provider: { order: ['north', 'east'] } }, ['north', 'east', 'east/turbo', 'west', 'south']],
  ['order', { provider: { order: ['east/turbo', 'north', 'east'] } }, ['east/turbo', 'north', 'east', 'west', 'south']],
  ['order', { provider: { order: [], allow_fallbacks: true } }, ALL],
  ['only', { provider: { only: ['west', 'north'] } }, ['west', 'north']],
  ['only', { provider: { only: ['east'] } }, ['east', 'east/turbo']],
  ['only', { provider: { only: ['east/turbo'] } }, ['east/turbo']],
  ['only', { provider: { only: null } }, ALL],
  ['ignore', { provider: { ignore: ['west', 'elsewhere'] } }, ['east', 'east/turbo', 'north', 'south']],
  ['ignore', { provider: { ignore: ['east'] } }, ['west', 'north', 'south']],
  ['ignore', { provider: { ignore: ['east/turbo'] } }, ['east', 'west', 'north', 'south']],
  ['quantizations', { provider: { quantizations: ['fp8'] } }, ['east', 'east/turbo']],
  ['quantizations', { provider: { quantizations: ['int4', 'unknown'] } }, ['west', 'north', 'south']],
  // With its fee per call `west` is dearer for a short request, and cheaper for a long one.
  ['sort', { provider: { sort: 'price' } }, ['east', 'east/turbo', 'west', 'north', 'south']],
  ['sort', { messages: [{ role: 'user', content: 'x'.repeat(39_000) }], provider: { sort: 'price' } }, ['west', 'east', 'east/turbo', 'north', 'south']],
  ['sort', { provider: { sort: 'throughput' } }, ['east/turbo', 'west', 'east', 'north', 'south']],
  ['sort', { provider: { sort: 'latency' } }, ['east/turbo', 'north', 'east', 'west', 'south']],
  ['sort', { models: ['b/two'], provider: { sort: { by: 'latency' } } }, ['east/turbo', 'north', 'east', 'west', 'south', 'local']],
  ['sort', { models: ['b/two'], provider: { sort: { by: 'latency', partition: 'model' } } }, ['east/turbo', 'north', 'east', 'west', 'south', 'local']],
  ['sort', { models: ['b/two'], provider: { sort: { by: 'latency', partition: 'none' } } }, ['local', 'east/turbo', 'north', 'east', 'west', 'south']],
  ['sort', { models: ['b/two'], route: 'sort', provider: { sort: 'latency' } }, ['local', 'east/turbo', 'north', 'east', 'west', 'south']],
  ['sort', { provider: { sort: 'price', order: ['south'] } }, ['south', 'east', 'east/turbo', 'west', 'north']],
  ['quantizations', { provider: { quantizations: [], only: [], ignore: [], order: [] } }, ALL],
  ['max_price', { provider: { max_price: { prompt: 2 } } }, ['east', 'east/turbo', 'west']],
  ['max_price', { provider: { max_price: { completion: '4' } } }, ['east', 'west']],
  ['max_price', { provider: { max_price: { request: 0 } } }, ['east', 'east/turbo', 'north']],
  ['max_price', { provider: { max_price: { image: 0.01 } } }, ALL],
  ['max_price', { ...content(text, picture), provider: { max_price: { image: 0.02 } } }, ['north']],
  ['max_price', { ...content(text, recording), provider: { max_price: { audio: '0.03' } } }, ['north']],
  ['max_price', { provider: { max_price: { web_search: 0 } } }, ALL],
  ['max_price', { ...web({ engine: 'native' }), provider: { max_price: { web_search: 0.01 } } }, ['north']],
  [
    'max_price',
    {
      plugins: [
        { id: 'web', enabled: false },
        { id: 'web', engine: 'native' },
      ],
      provider: { max_price: { web_search: 0.01 } },
    },
    ['north'],
  ],
  ['max_price', { web_search_options: {}, provider: { max_price: { web_search: '0.02' } } }, ['north']],
  ['max_price', { ...web(), provider: { max_price: { web_search: 0.001 } } }, ['east', 'east/turbo', 'west']],
  ['max_price', { ...web({ engine: 'exa' }), provider: { max_price: { web_search: 0 } } }, ALL],
  ['max_price', { ...web({ enabled: false }), provider: { max_price: { web_search: 0 } } }, ALL],
  ['preferred_min_throughput', { provider: { preferred_min_throughput: 50 } }, ['east/turbo', 'west', 'east', 'north', 'south']],
  ['preferred_min_throughput', { provider: { preferred_min_throughput: 1_000 } }, ALL],
  ['preferred_min_throughput', { provider: { preferred_min_throughput: { p50: 50, p99: 30 } } }, ['west', 'east', 'east/turbo', 'north', 'south']],
  ['preferred_max_latency', { provider: { preferred_max_latency: 0.5 } }, ['east/turbo', 'north', 'east', 'west', 'south']],
  ['preferred_max_latency', { provider: { preferred_max_latency: { p50: 0.5, p90: 1 } } }, ['north', 'east', 'east/turbo', 'west', 'south']],
  ['preferred_max_latency', { models: ['b/two'], provider: { preferred_max_latency: 0.2, sort: { partition: 'none' } } }, ['local', ...ALL]],
  ['min_throughput', { provider: { min_throughput: 50 } }, ['east/turbo', 'west']],
  ['max_latency', { provider: { max_latency: 1 } }, ['east', 'east/turbo', 'north']],
];

describe('the table `provider` of the contract', () => {
  it.each(rows)('%s: %j is served in its order', (_, request, tags) => {
    expect(tagsOf(request)).toEqual(tags);
  });

  it('has a row for each of its fields', () => {
    const named = new Set(rows.map(([field]) => field));
    const fields = [
      ...['allow_fallbacks', 'require_parameters', 'data_collection', 'zdr', 'enforce_distillable_text', 'order', 'only', 'ignore', 'quantizations'],
      ...['sort', 'max_price', 'preferred_min_throughput', 'preferred_max_latency', 'min_throughput', 'max_latency'],
    ];
    expect([...named].filter((field) => field !== 'none').toSorted()).toEqual(fields.toSorted());
  });
});

/** What excludes which endpoints, when it excludes all that are left. */
const refusals: readonly [filter: string, request: Partial<ChatRequest>][] = [
  ['allowed_providers', { provider: { only: ['elsewhere'] } }],
  ['allowed_providers', { provider: { only: ['elsewhere'] } }],
  ['allowed_providers', { provider: { ignore: ['east', 'west', 'north', 'south'] } }],
  ['allowed_providers', { provider: { order: ['elsewhere'], allow_fallbacks: false } }],
  ['data_policy:training', { provider: { data_collection: 'deny', ignore: ['north'] } }],
  ['data_policy:zdr', { provider: { zdr: true, only: ['east'] } }],
  ['distillable_text', { provider: { enforce_distillable_text: true } }],
  ['quantization', { provider: { quantizations: ['fp32'] } }],
  ['max_price', { provider: { max_price: { prompt: 0.5 } } }],
  ['context_length', { max_tokens: 100_000, provider: { only: ['west'] } }],
  ['context_length', { messages: [{ role: 'user', content: 'word '.repeat(9_000) }], provider: { only: ['west'] } }],
  ['modality', { ...content(text, { type: 'video_url', video_url: { url: 'https://a.test/v.mp4' } }) }],
  ['require_parameters', { seed: 1, provider: { require_parameters: true, quantizations: ['fp8'], ignore: ['east/turbo'] } }],
  ['min_throughput', { provider: { min_throughput: 1_000 } }],
  ['max_latency', { provider: { max_latency: 0.01 } }],
];

describe('a request that no endpoint can serve', () => {
  it.each(refusals)('is refused, and `excluded_by` has %s for %j', (filter, request) => {
    const { candidates, decision } = chosen(config, { model: 'a/one', ...request }, {}, { health });
    const { excluded_by: excluded } = noProvider(decision).details as { excluded_by: { filter: string; endpoints: string[] }[] };

    expect(candidates).toEqual([]);
    expect(excluded.map((row) => row.filter)).toContain(filter);
    expect(excluded.flatMap(({ endpoints }) => endpoints).toSorted()).toEqual(ALL.map((tag) => `a/one@${tag}`).toSorted());
  });
});

describe('the rules of the account', () => {
  const tagsUnder = (account: object, request: Partial<ChatRequest> = {}) => tagsOf(request, { rules: accountRulesOf({ account }).of('k') });

  it.each<[object, Partial<ChatRequest>, string[]]>([
    [{ allowed_providers: ['east', 'west'] }, {}, ['east', 'east/turbo', 'west']],
    [{ allowed_providers: ['east', 'west'] }, { provider: { only: ['west', 'north'] } }, ['west']],
    [{ allowed_providers: ['east/turbo', 'west'] }, { provider: { only: ['east'] } }, ['east/turbo']],
    [{ allowed_providers: ['east'] }, { provider: { order: ['north', 'east/turbo'] } }, ['east/turbo', 'east']],
    [{ ignored_providers: ['east'] }, { provider: { ignore: ['west'] } }, ['north', 'south']],
    [{ ignored_providers: ['east'] }, { provider: { only: ['east', 'west'] } }, ['west']],
    [{ data_collection: 'deny' }, { provider: { data_collection: 'allow' } }, ['north']],
    [{ zdr: true }, { provider: { zdr: false } }, ['west', 'north']],
    [{ data_collection: 'allow', zdr: false }, {}, ALL],
  ])('router-facts 5.1: %j with %j: a request narrows them, and widens none', (account, request, tags) => {
    expect(tagsUnder(account, request)).toEqual(tags);
  });
});

describe('context length', () => {
  it.each<[string, Partial<ChatRequest>, string[]]>([
    ['the prompt and the tokens that are asked for fit together', { messages: [{ role: 'user', content: 'x'.repeat(20_000) }], max_tokens: 3_990 }, ALL],
    [
      'or exclude the endpoint together',
      { messages: [{ role: 'user', content: 'x'.repeat(20_000) }], max_tokens: 4_010 },
      ['east', 'east/turbo', 'north', 'south'],
    ],
    ['a prompt that may fit is sent', { messages: [{ role: 'user', content: 'word '.repeat(7_900) }] }, ALL],
  ])('%s', (_, request, tags) => {
    expect(tagsOf(request)).toEqual(tags);
  });
});
