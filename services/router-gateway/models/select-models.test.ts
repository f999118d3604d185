import { fastify } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixed } from '#shared/config/living.ts';
import { type EndpointConfig, routerConfig } from '#shared/config/router-config.ts';
import { listModels } from '../routes/models.ts';
import { type Measured, notMeasured } from './measured.ts';
import { modelListsOf } from './model-lists.ts';
import { selectModels } from './select-models.ts';

const endpoint = (provider: string, fields: Partial<EndpointConfig> = {}) => ({ provider, upstream_model: 'm', ...fields });
const prices = (prompt: string, completion: string) => ({ prices: { prompt, completion } });
const config = routerConfig.parse({
  providers: [
    { slug: 'east', name: 'East Cloud', kind: 'openai-compatible', profile: 'openai', api_key: '${EAST}' },
    { slug: 'own', kind: 'openai-compatible', profile: 'vllm' },
  ],
  models: [
    {
      id: 'acme/large',
      name: 'The Large One',
      created: '2020-03-01',
      categories: ['programming', 'marketing/seo'],
      endpoints: [endpoint('east', { ...prices('3', '15'), context_length: 200_000, modalities: ['image', 'file'] })],
    },
    {
      ...{ id: 'acme/small', distillable: true },
      endpoints: [
        endpoint('own', {
          ...prices('0', '0'),
          context_length: 8_000,
          supported_parameters: ['tools', 'stop'],
          speed: { tokens_per_second: 80 },
          region: 'eu',
        }),
      ],
      created: new Date().toISOString().slice(0, 10),
    },
    { id: 'Beta/unpriced', distillable: false, endpoints: [endpoint('east', { speed: { first_token_seconds: 0.4 } }), endpoint('own')] },
    { id: 'beta/vectors', embeddings: {}, endpoints: [endpoint('east', prices('0.02', '0'))] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const ALL = ['acme/large', 'acme/small', 'Beta/unpriced', 'beta/vectors'];

const app = fastify();
beforeAll(async () => {
  await app.register(listModels(fixed({ modelLists: modelListsOf(config) }), notMeasured), { prefix: '/api/v1' });
});
afterAll(() => app.close());
const get = (path: string) => app.inject(`/api/v1${path}`);
const ids = (data: { id: string }[]) => data.map(({ id }) => id);
const listed = async (query: string) => ids((await get(`/models?${query}`)).json().data);

describe('GET /models', () => {
  it.each<[string, string[]]>([
    ['', ALL],
    ['q=LARGE', ['acme/large']],
    ['q=the large', ['acme/large']],
    ['q=', ALL],
    ['supported_parameters=tools', ['acme/large', 'acme/small', 'Beta/unpriced']],
    ['supported_parameters=tools,temperature', ['acme/large', 'Beta/unpriced']],
    ['input_modalities=image', ['acme/large']],
    ['input_modalities=image,file', ['acme/large']],
    ['input_modalities=image,video', []],
    ['output_modalities=embeddings', ['beta/vectors']],
    ['output_modalities=text,embeddings', ALL],
    ['output_modalities=all', ALL],
    ['context=8000', ['acme/large', 'acme/small']],
    ['context=8001', ['acme/large']],
    ['min_price=0.02', ['acme/large', 'beta/vectors']],
    ['max_price=0.02', ['acme/small', 'beta/vectors']],
    ['min_output_price=1', ['acme/large']],
    ['max_output_price=0', ['acme/small', 'beta/vectors']],
    ['arch=other', ALL],
    ['arch=Claude', []],
    ['model_authors=acme', ['acme/large', 'acme/small']],
    ['model_authors=beta,%20none', ['Beta/unpriced', 'beta/vectors']],
    ['providers=own', ['acme/small', 'Beta/unpriced']],
    ['providers=East%20Cloud', ['acme/large', 'Beta/unpriced', 'beta/vectors']],
    ['distillable=true', ['acme/small']],
    ['distillable=false', ['Beta/unpriced']],
    ['zdr=true', ['acme/small', 'Beta/unpriced']],
    ['zdr=false', ALL],
    ['min_price=0.02&model_authors=acme', ['acme/large']],
    ['category=Programming', ['acme/large']],
    ['category=marketing%2Fseo', ['acme/large']],
    ['category=trivia', []],
    ['region=eu', ['acme/small']],
    ['region=us', []],
    ['min_age_days=100', ['acme/large']],
    ['max_age_days=100', ['acme/small']],
    ['min_age_days=0', ['acme/large', 'acme/small']],
    ['sort=newest', ['acme/small', 'acme/large', 'Beta/unpriced', 'beta/vectors']],
    ['min_coding_index=', ALL],
    ['use_rss=true', ALL],
    ['sort=pricing-low-to-high', ['acme/small', 'beta/vectors', 'acme/large', 'Beta/unpriced']],
    ['sort=pricing-high-to-low', ['acme/large', 'beta/vectors', 'acme/small', 'Beta/unpriced']],
    ['sort=context-high-to-low', ['acme/large', 'acme/small', 'Beta/unpriced', 'beta/vectors']],
    ['sort=throughput-high-to-low', ['acme/small', 'acme/large', 'Beta/unpriced', 'beta/vectors']],
    ['sort=latency-low-to-high', ['Beta/unpriced', 'acme/large', 'acme/small', 'beta/vectors']],
    ...['most-popular', 'top-weekly', 'intelligence-high-to-low', 'coding-high-to-low', 'agentic-high-to-low', 'design-arena-elo-high-to-low'].map(
      (sort): [string, string[]] => [`sort=${sort}`, ALL],
    ),
  ])('with ?%s', async (query, expected) => {
    expect(await listed(query)).toEqual(expected);
  });

  it('has pages, each with the path of the next one and the number of all', async () => {
    const first = (await get('/models?limit=2&max_price=10&model_authors=acme,beta')).json();
    const second = (await get(first.links.next.slice('/api/v1'.length))).json();

    expect([ids(first.data), first.total_count]).toEqual([['acme/large', 'acme/small'], 3]);
    expect(first.links.next).toBe('/api/v1/models?limit=2&max_price=10&model_authors=acme%2Cbeta&offset=2');
    expect([ids(second.data), second.links, second.total_count]).toEqual([['beta/vectors'], { next: null }, 3]);
    expect(ids((await get('/models?offset=3')).json().data)).toEqual(['beta/vectors']);
    expect((await get('/models?offset=4&limit=1000')).json()).toMatchObject({ data: [], links: { next: null }, total_count: 4 });
    expect((await get('/models?offset=&limit=4')).json().links.next).toBeNull();
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1.5', 'limit'],
    ['offset=x', 'offset'],
    ['offset=9999999999', 'offset'],
    ['context=1e9', 'context'],
    ['min_price=cheap', 'min_price'],
    ['max_output_price=1e999', 'max_output_price'],
    ['sort=beauty', 'sort'],
    ['distillable=perhaps', 'distillable'],
    ['zdr=1', 'zdr'],
    ['q=a&q=b', 'q'],
    ['min_age_days=old', 'min_age_days'],
    ...['intelligence_index', 'coding_index', 'agentic_index', 'tool_success_rate'].flatMap((score) =>
      ['min', 'max'].map((end): [string, string] => [`${end}_${score}=0.5`, `${end}_${score}`]),
    ),
    [`q=${'x'.repeat(201)}`, 'q'],
    ['providers=a&providers=b', 'providers'],
  ])('refuses ?%s', async (query, param) => {
    const response = await get(`/models?${query}`);

    expect(response.statusCode).not.toBe(200);
    expect(response.json().message).toMatch(new RegExp(`^${param} must `));
  });
});

describe('the other lists', () => {
  it('are those of vectors, and of the caller, with pages and modalities', async () => {
    expect(ids((await get('/embeddings/models')).json().data)).toEqual(['beta/vectors']);
    expect(ids((await get('/models/user')).json().data)).toEqual(ALL);
    expect((await get('/models/user?limit=1&output_modalities=text')).json()).toMatchObject({
      data: [{ id: 'acme/large' }],
      links: { next: '/api/v1/models/user?limit=1&output_modalities=text&offset=1' },
      total_count: 3,
    });
  });

  it('are counted', async () => {
    const count = async (query: string) => (await get(`/models/count${query}`)).json().data.count;
    expect([await count(''), await count('?output_modalities=embeddings'), await count('?output_modalities=audio')]).toEqual([4, 1, 0]);
  });

  it('have the endpoints of providers that retain nothing, and the providers', async () => {
    const { data } = (await get('/endpoints/zdr')).json();
    expect(data.map((entry: { model_id: string; tag: string }) => [entry.model_id, entry.tag])).toEqual([
      ['acme/small', 'own'],
      ['Beta/unpriced', 'own'],
    ]);
    const { data: providers } = (await get('/providers')).json();
    expect(providers.map(({ slug, name }: { slug: string; name: string }) => [slug, name])).toEqual([
      ['east', 'East Cloud'],
      ['own', 'own'],
    ]);
  });

  it('have one model, also at /model', async () => {
    expect((await get('/model/acme/large')).json().data.id).toBe('acme/large');
    expect((await get('/model/acme/none')).statusCode).not.toBe(200);
  });
});

it('lists for a caller what the rules of the account and of its key let its requests reach', () => {
  const models = [
    { id: 'a/one', endpoints: [endpoint('east', { ...prices('3', '15'), tag: 'east/turbo' }), endpoint('own', prices('1', '2'))] },
    { id: 'a/east', endpoints: [endpoint('east')] },
  ];
  const ofKeys = (account: object, key: object = {}) => {
    const keys = [
      { id: 'k', key: '${KEY}', account: key },
      { id: 'plain', key: '${PLAIN}' },
    ];
    const lists = modelListsOf(routerConfig.parse({ ...config, models, keys, account }));
    return ['k', 'plain'].map((id) => lists.ofKey(id).map(({ model, entry }) => [model.id, model.endpoints.length, entry.pricing.prompt]));
  };
  const all = [
    ['a/one', 2, '0.000003'],
    ['a/east', 1, '-1'],
  ];

  expect(ofKeys({})).toEqual([all, all]);
  expect(ofKeys({}, { zdr: true })).toEqual([[['a/one', 1, '0.000001']], all]);
  expect(ofKeys({ data_collection: 'deny' })[1]).toEqual([['a/one', 1, '0.000001']]);
  expect(ofKeys({ ignored_providers: ['east/turbo'] })[1]).toEqual([
    ['a/one', 1, '0.000001'],
    ['a/east', 1, '-1'],
  ]);
  expect(ofKeys({ allowed_providers: ['east'] }, { ignored_providers: ['east'] })).toEqual([[], [['a/one', 1, '0.000003'], all[1]]]);
});

it('shows and orders by what is measured of endpoints, in place of what the configuration states', () => {
  const of = (p50: number) => ({ p50, p75: p50, p90: p50, p99: p50 });
  const known: Measured = { status: -2, latencyMs: of(900), tokensPerSecond: of(120), uptime: { last5m: 98.5, last30m: null, last1d: 99 } };
  const measured = { refresh: async () => {}, of: ({ provider, speed }: EndpointConfig) => (provider === 'east' && speed !== undefined ? known : null) };
  const lists = modelListsOf(config);
  const first = (sort: 'throughput-high-to-low' | 'latency-low-to-high') => selectModels(lists.all, { sort }, '', measured).data[0]?.id;

  expect([first('throughput-high-to-low'), first('latency-low-to-high')]).toEqual(['Beta/unpriced', 'Beta/unpriced']);
  expect(lists.endpoints('Beta/unpriced', measured)?.data.endpoints[0]).toMatchObject({
    ...{ status: -2, uptime_last_5m: 98.5, uptime_last_30m: null, uptime_last_1d: 99, latency_last_30m: { p50: 900 }, throughput_last_30m: { p99: 120 } },
  });
});

it('lists of an endpoint the parameters that its provider’s adapter can send, whatever it declares, and `n` of none', () => {
  const { models, ...rest } = routerConfig.parse({
    providers: [
      { slug: 'ant', kind: 'anthropic', api_key: '${KEY}' },
      { slug: 'own', kind: 'openai-compatible', profile: 'vllm' },
    ],
    models: [
      { id: 'a/silent', endpoints: [endpoint('ant')] },
      { id: 'a/declaring', endpoints: [endpoint('ant', { supported_parameters: ['n', 'seed', 'tools', 'my_own'] })] },
      { id: 'a/open', endpoints: [endpoint('own', { supported_parameters: ['n', 'seed', 'tools', 'my_own'] })] },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const lists = modelListsOf({ models, ...rest });
  const parametersOf = (id: string) => lists.one(id)?.supported_parameters;

  expect(parametersOf('a/silent')).toEqual(expect.arrayContaining(['reasoning', 'stop', 'tools', 'top_k']));
  expect(parametersOf('a/silent')).not.toContain('seed');
  expect(parametersOf('a/declaring')).toEqual(['tools']);
  expect(parametersOf('a/open')).toEqual(['my_own', 'seed', 'tools']);
  expect(lists.endpoints('a/declaring', notMeasured)?.data.endpoints.map((one) => one.supported_parameters)).toEqual([['tools']]);
});
