import { describe, expect, it } from 'vitest';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Candidate } from './candidates.ts';
import { supportsAll } from './parameters.ts';
import { chosenCandidates } from './test-support/chosen.ts';

type Endpoint = RouterConfig['models'][number]['endpoints'][number];

function configWith(models: Record<string, Partial<Endpoint>[]>, extra: object = {}): RouterConfig {
  return routerConfig.parse({
    providers: [
      { slug: 'east', name: 'East', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' },
      { slug: 'west', name: 'West', kind: 'openai-compatible', base_url: 'http://127.0.0.1:2/v1' },
      { slug: 'local', kind: 'scripted' },
      { slug: 'ant', kind: 'anthropic', api_key: '${KEY}' },
    ],
    models: Object.entries(models).map(([id, endpoints]) => ({
      id,
      aliases: [`${id}-alias`],
      order: 'file',
      endpoints: endpoints.map((endpoint) => ({ provider: 'east', upstream_model: id, ...endpoint })),
    })),
    keys: [{ id: 'k', key: '${KEY}' }],
    ...extra,
  });
}

const east = { provider: 'east' };
const west = { provider: 'west' };
const local = { provider: 'local' };

function candidates(config: RouterConfig, request: Partial<ChatRequest> = {}, maxTokens: number | null = null): Candidate[] {
  return chosenCandidates(config, request, { maxTokens });
}

const named = (list: Candidate[]) => list.map(({ model, provider }) => `${model.id}@${provider.slug}`);

function refusal(work: () => unknown): SwitchyardError {
  try {
    work();
  } catch (error) {
    return error as SwitchyardError;
  }
  throw new Error('nothing was refused');
}

describe('reasoning that is sent back', () => {
  const config = {
    ...configWith({ 'a/one': [east, { provider: 'claude' }], 'b/two': [{ provider: 'claude' }] }),
    providers: [...configWith({ 'a/one': [east] }).providers, { slug: 'claude', kind: 'anthropic', api_key: '${KEY}' }],
  };
  const answer = (format: string | null) => ({
    role: 'assistant' as const,
    content: 'so',
    reasoning_details: [{ type: 'reasoning.encrypted', data: 'd', format }, null],
  });
  const order = (format: string | null, request: Partial<ChatRequest> = {}) =>
    named(candidates(config, { models: ['a/one', 'b/two'], messages: [{ role: 'user', content: 'hi' }, answer(format)], ...request }));

  it('puts the endpoints first that read it, model by model', () => {
    expect(order('anthropic-claude-v1')).toEqual(['a/one@claude', 'a/one@east', 'b/two@claude']);
    expect(order('google-gemini-v1')).toEqual(['a/one@east', 'a/one@claude', 'b/two@claude']);
    expect(order(null)).toEqual(['a/one@east', 'a/one@claude', 'b/two@claude']);
  });

  it('does not overrule the caller’s order', () => {
    expect(order('anthropic-claude-v1', { provider: { order: ['east'] } })[0]).toBe('a/one@east');
  });
});

describe('the models of a request', () => {
  const config = configWith({ 'a/one': [east, west], 'b/two': [west] });

  it('refuses an unknown model', () => {
    expect(refusal(() => candidates(config, { model: 'x/none' }))).toMatchObject({
      code: 'router.model_unknown',
      message: 'x/none is not a valid model ID',
      details: { param: 'model' },
    });
  });

  it('refuses a list of unknown models', () => {
    expect(refusal(() => candidates(config, { models: ['x/none', 'y/none'] }))).toMatchObject({
      message: 'x/none is not a valid model ID',
      details: { param: 'models' },
    });
  });

  it('skips an unknown model among known ones', () => {
    expect(named(candidates(config, { model: 'x/none', models: ['b/two'] }))).toEqual(['b/two@west']);
  });

  it('DESIGN 8: the model is tried first, then the list, each once, by id or by alias', () => {
    expect(named(candidates(config, { model: 'b/two', models: ['a/one-alias', 'b/two-alias', 'a/one'] }))).toEqual(['b/two@west', 'a/one@east', 'a/one@west']);
  });

  it('uses the default model when none is named: the configured one, or else the first', () => {
    expect(named(candidates(config))).toEqual(['a/one@east', 'a/one@west']);
    expect(named(candidates(configWith({ 'a/one': [east], 'b/two': [west] }, { default_model: 'b/two' })))).toEqual(['b/two@west']);
  });

  it('names the provider as the configuration does, or by its slug', () => {
    expect(candidates(configWith({ 'a/one': [east, local] })).map(({ provider }) => provider.name)).toEqual(['East', 'local']);
  });
});

describe('eligible endpoints', () => {
  it('refuses more tokens than any endpoint allows, and names the filter', () => {
    const config = configWith({
      'a/one': [
        { ...east, max_completion_tokens: 100 },
        { ...west, context_length: 200 },
      ],
    });
    expect(refusal(() => candidates(config, { max_tokens: 200 }))).toMatchObject({
      code: 'router.no_provider',
      details: { excluded_by: [{ filter: 'context_length', endpoints: ['a/one@east', 'a/one@west'] }] },
    });
    expect(named(candidates(config, { max_completion_tokens: 150 }))).toEqual(['a/one@west']);
  });

  it.each([
    ['tools', { tools: [{ type: 'function' as const, function: { name: 'f' } }] }],
    ['response_format', { response_format: { type: 'json_object' as const } }],
  ])('prefers those that take %s, and drops it when none does', (parameter, request) => {
    const without = { ...east, supported_parameters: ['temperature'] };
    const having = { ...west, supported_parameters: [parameter] };
    expect(named(candidates(configWith({ 'a/one': [without, having] }), request))).toEqual(['a/one@west']);
    const [only] = candidates(configWith({ 'a/one': [without] }), request);
    expect(only?.request).not.toHaveProperty(parameter);
  });

  it('leaves out endpoints that lack a parameter for callers that require it', () => {
    const config = configWith({ 'a/one': [{ ...east, supported_parameters: ['temperature'] }, west] });
    expect(named(candidates(config, { seed: 1, provider: { require_parameters: true } }))).toEqual(['a/one@west']);
    expect(named(candidates(config, { seed: 1 }))).toEqual(['a/one@east', 'a/one@west']);
  });

  it.each<[string, object]>([
    ['a seed', { seed: 5 }],
    ['a bias', { logit_bias: { 5: 1 } }],
    ['log probabilities', { logprobs: true }],
    ['a tier that its API lacks', { service_tier: 'flex' }],
    ['a field that the router does not know', { my_own: 1 }],
  ])('leaves out endpoints whose adapter cannot send %s, for callers that require it, whatever they list', (_, fields) => {
    const ant = { provider: 'ant', supported_parameters: Object.keys(fields) };
    const config = configWith({ 'a/one': [ant, { ...ant, tag: 'ant/all', supported_parameters: undefined }, west] });
    expect(named(candidates(config, { ...fields, provider: { require_parameters: true } }))).toEqual(['a/one@west']);
    expect(named(candidates(config, fields))).toHaveLength(3);
    expect(candidates(config, fields)[0]?.request).not.toHaveProperty(Object.keys(fields));
  });

  const sampling = { top_k: 0, top_a: 0, min_p: 0, repetition_penalty: 1, presence_penalty: 0, logit_bias: {}, stop: [] };
  it.each<[string, object]>([
    ['its sampling', sampling],
    ['its storage', { store: false, truncation: 'disabled', service_tier: 'auto' }],
    ['the calls of no tools', { parallel_tool_calls: false, tool_choice: 'none' }],
  ])('leaves out no endpoint for callers that require parameters and state what every API does about %s', (_, fields) => {
    const listing = { ...east, supported_parameters: ['temperature'] };
    const config = configWith({ 'a/one': [{ provider: 'ant' }, listing, west] });
    expect(named(candidates(config, { ...fields, provider: { require_parameters: true } }))).toEqual(['a/one@ant', 'a/one@east', 'a/one@west']);
  });

  it('requires of a vendor with tiers alone that it takes the plain one', () => {
    const plain: Partial<ChatRequest> = { service_tier: 'default' };
    const gemini = { endpoint: { ...east, upstream_model: 'm' }, provider: { kind: 'gemini' } };
    expect(supportsAll(gemini, { messages: [], ...plain })).toBe(true);
    expect(supportsAll(gemini, { messages: [], service_tier: 'flex' })).toBe(false);
    const config = configWith({ 'a/one': [{ ...east, supported_parameters: ['temperature'] }, west] });
    expect(named(candidates(config, { ...plain, provider: { require_parameters: true } }))).toEqual(['a/one@west']);
  });

  it.each([{ n: 3 }, { n: 2, seed: 1 }])('has no endpoint for a caller that requires several answers: %j', (fields) => {
    const config = configWith({ 'a/one': [east, { ...west, supported_parameters: ['n', 'seed'] }] });
    expect(refusal(() => candidates(config, { ...fields, provider: { require_parameters: true } })).code).toBe('router.no_provider');
    expect(named(candidates(config, { ...fields, n: 1, provider: { require_parameters: true } }))).not.toEqual([]);
  });

  describe('a tier', () => {
    const prices = { prompt: '1', completion: '2', tiers: { priority: { prompt: '2', completion: '4' } } };
    const config = (fields: Partial<Endpoint> = {}) => configWith({ 'a/one': [{ ...east, prices, ...fields }] });
    const sentFor = (request: Partial<ChatRequest>, reserved: boolean, fields: Partial<Endpoint> = {}) =>
      chosenCandidates(config(fields), request, { reserved })[0]?.request;
    const ofEast = (own: Record<string, unknown>) => ({ provider_options: { east: own } });

    it('without a price is not sent for a reserved call, since it may cost more than is billed', () => {
      expect(sentFor({ service_tier: 'flex' }, true)).not.toHaveProperty('service_tier');
      expect(sentFor({ service_tier: 'flex' }, false)).toHaveProperty('service_tier', 'flex');
      for (const tier of ['priority', 'auto', 'default'] as const) expect(sentFor({ service_tier: tier }, true)).toHaveProperty('service_tier', tier);
    });

    it('of the provider’s own options is the request’s, under the same rules', () => {
      expect(sentFor(ofEast({ service_tier: 'priority', own: 1 }), true)).toMatchObject({ service_tier: 'priority', ...ofEast({ own: 1 }) });
      expect(sentFor({ service_tier: 'priority', ...ofEast({ service_tier: 'scale' }) }, true)).not.toHaveProperty('service_tier');
      expect(sentFor(ofEast({ service_tier: 'scale' }), false)).toHaveProperty('service_tier', 'scale');
      const lists = { supported_parameters: ['max_tokens'] };
      expect(sentFor(ofEast({ service_tier: 'priority', seed: 1, own: 1 }), false, lists)).toEqual({
        messages: [{ role: 'user', content: 'hi' }],
        ...ofEast({ own: 1 }),
      });
    });

    it('of the provider’s own options stays one of them where it is sent, and so overrules what a profile leaves out', () => {
      const own = { service_tier: 'priority', web_search_options: {}, own: 1 };
      expect(sentFor(ofEast(own), true)).toMatchObject({ service_tier: 'priority', web_search_options: {}, ...ofEast(own) });
      expect(sentFor(ofEast({ service_tier: 'scale', own: 1 }), true)?.provider_options).toEqual({ east: { own: 1 } });
      expect(sentFor({ service_tier: 'priority', ...ofEast({ service_tier: null }) }, true)).toMatchObject({ service_tier: 'priority', ...ofEast({}) });
      expect(sentFor(ofEast({ service_tier: null }), true)?.provider_options).toEqual({ east: {} });
    });

    it('without a price excludes an endpoint from a reserved call that requires its parameters', () => {
      const requiring = { service_tier: 'scale' as const, provider: { require_parameters: true } };
      expect(refusal(() => chosenCandidates(config(), requiring, { reserved: true })).code).toBe('router.no_provider');
      expect(chosenCandidates(config(), requiring)).toHaveLength(1);
    });

    it('counts with its own prices for the most that a caller pays', () => {
      const asking = (tier: 'priority' | 'default') => ({ service_tier: tier, provider: { max_price: { prompt: 1 } } });
      expect(refusal(() => chosenCandidates(config(), asking('priority'))).code).toBe('router.no_provider');
      expect(chosenCandidates(config(), asking('default'))).toHaveLength(1);
    });
  });

  it('leaves out endpoints without prices for a reserved call, since nothing could be billed', () => {
    const config = configWith({ 'a/one': [east, { ...west, prices: { prompt: '1', completion: '2' } }], 'b/two': [east] });
    const candidatesOf = (model: string, reserved: boolean) => chosenCandidates(config, { model }, { reserved });
    expect(named(candidatesOf('a/one', true))).toEqual(['a/one@west']);
    expect(named(candidatesOf('a/one', false))).toEqual(['a/one@east', 'a/one@west']);
    const unpriced = refusal(() => candidatesOf('b/two', true));
    expect(unpriced.details).toEqual({ excluded_by: [{ filter: 'unpriced', endpoints: ['b/two@east'] }] });
    expect(unpriced.message, 'what to do').toMatch(/prices of its endpoints, or ROUTER_PRICES/);
  });

  it('counts no field that only the router reads among the required parameters', () => {
    const config = configWith({ 'a/one': [{ ...east, supported_parameters: ['temperature'] }] });
    const request = { temperature: 1, usage: { include: true }, transforms: [], provider: { require_parameters: true } };
    expect(named(candidates(config, request))).toEqual(['a/one@east']);
  });

  it.each([
    [{ only: ['west'] }, ['a/one@west']],
    [{ ignore: ['west'] }, ['a/one@east', 'a/one@local']],
    [{ order: ['local', 'west'] }, ['a/one@local', 'a/one@west', 'a/one@east']],
    [{ order: ['west'], allow_fallbacks: false }, ['a/one@west']],
    [{ allow_fallbacks: false }, ['a/one@east']],
    [{ data_collection: 'deny' as const }, ['a/one@local']],
    [{ zdr: true }, ['a/one@local']],
    [{ max_price: { prompt: '1', completion: 2 } }, ['a/one@east']],
  ])('DESIGN 8: only endpoints that match the preferences %o are candidates', (provider, expected) => {
    const config = configWith({
      'a/one': [{ ...east, prices: { prompt: '1', completion: '2' } }, { ...west, prices: { prompt: '1.5', completion: '2' } }, local],
    });
    expect(named(candidates(config, { provider }))).toEqual(expected);
  });

  it('serves callers with a data policy where the configuration allows it', () => {
    const base = { kind: 'openai-compatible' as const, base_url: 'http://127.0.0.1:1/v1' };
    const config = configWith(
      { 'a/one': [east, west, { provider: 'north' }] },
      {
        providers: [
          { ...base, slug: 'east', data_policy: { trains: false, retains: true } },
          { ...base, slug: 'west', data_policy: { trains: true, retains: false } },
          { ...base, slug: 'north', data_policy: { trains: false, retains: false } },
        ],
      },
    );
    expect(named(candidates(config, { provider: { data_collection: 'deny' } }))).toEqual(['a/one@north']);
    expect(named(candidates(config, { provider: { zdr: true } }))).toEqual(['a/one@west', 'a/one@north']);
    expect(named(candidates(config, { provider: { data_collection: 'allow', zdr: false } }))).toHaveLength(3);
  });

  it.each([
    [{ quantizations: ['fp8' as const] }, ['a/one@east'], 'quantization'],
    [{ quantizations: ['unknown' as const] }, ['a/one@west'], 'quantization'],
    [{ min_throughput: 40 }, ['a/one@east'], 'min_throughput'],
    [{ max_latency: 0.6 }, ['a/one@east'], 'max_latency'],
  ])('DESIGN 8: endpoints that do not match %o are left out, and the error names the rule', (provider, expected, filter) => {
    const fast = { ...east, quantization: 'fp8' as const, speed: { tokens_per_second: 50, first_token_seconds: 0.5 } };
    expect(named(candidates(configWith({ 'a/one': [fast, west] }), { provider }))).toEqual(expected);
    const slow = { ...east, quantization: 'int4' as const, speed: { tokens_per_second: 10, first_token_seconds: 5 } };
    const { details } = refusal(() => candidates(configWith({ 'a/one': [slow] }), { provider }));
    expect(details.excluded_by).toEqual([{ filter, endpoints: ['a/one@east'] }]);
  });

  it('a longest latency of 0 is a demand that no endpoint meets', () => {
    const config = configWith({ 'a/one': [{ ...east, speed: { tokens_per_second: 50, first_token_seconds: 0.5 } }] });
    expect(refusal(() => candidates(config, { provider: { max_latency: 0 } })).details.excluded_by).toEqual([
      { filter: 'max_latency', endpoints: ['a/one@east'] },
    ]);
    expect(named(candidates(config, { provider: { max_latency: null, min_throughput: 0 } }))).toEqual(['a/one@east']);
  });

  it('serves callers that require distillable text only by models whose authors allow it', () => {
    const config = configWith({ 'a/one': [east], 'b/two': [local] });
    const provider = { enforce_distillable_text: true };
    expect(refusal(() => candidates(config, { model: 'a/one', provider }))).toMatchObject({ code: 'router.no_provider' });
    expect(named(candidates(config, { models: ['a/one', 'b/two'], provider }))).toEqual(['b/two@local']);
    const [model] = config.models;
    const allowing = { ...config, models: [{ ...model, id: 'a/one', aliases: [], description: '', endpoints: model?.endpoints ?? [], distillable: true }] };
    expect(named(candidates(allowing, { provider }))).toEqual(['a/one@east']);
  });

  it('applies the price of a picture only to requests with one', () => {
    const config = configWith({ 'a/one': [{ ...east, prices: { prompt: '1', completion: '2' } }] });
    const provider = { max_price: { image: 0.01 } };
    const picture = { messages: [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'https://a.test/x.png' } }] }] };
    expect(named(candidates(config, { provider }))).toEqual(['a/one@east']);
    const priced = configWith({
      'a/one': ['0.02', '0.01'].map((image, index) => ({ ...[east, west][index], prices: { prompt: '1', completion: '2', image } })),
    });
    expect(named(candidates(priced, { provider, ...picture }))).toEqual(['a/one@west']);
    expect(refusal(() => candidates(config, { provider, ...picture })).details).toEqual({
      excluded_by: [{ filter: 'max_price', endpoints: ['a/one@east'] }],
    });
  });

  it('refuses when the caller allows only providers that do not serve the model', () => {
    const config = configWith({ 'a/one': [east] });
    for (const provider of [{ only: ['west'] }, { order: ['west'], allow_fallbacks: false }]) {
      expect(refusal(() => candidates(config, { provider })).details).toEqual({ excluded_by: [{ filter: 'allowed_providers', endpoints: ['a/one@east'] }] });
    }
  });
});

describe('the order of candidates', () => {
  const priced = (prompt: string) => ({ prices: { prompt, completion: '1' } });
  const quick = (tokensPerSecond: number, seconds: number) => ({ speed: { tokens_per_second: tokensPerSecond, first_token_seconds: seconds } });
  const config = configWith({
    'a/one': [local, { ...east, ...priced('10'), ...quick(50, 3) }, { ...west, ...priced('9'), ...quick(20, 1) }],
    'b/two': [
      { ...east, ...priced('0.5'), ...quick(100, 2) },
      { ...west, ...priced('30'), ...quick(30, 0.5) },
    ],
  });
  const models = ['a/one', 'b/two'];
  const AS_CONFIGURED = ['a/one@local', 'a/one@east', 'a/one@west', 'b/two@east', 'b/two@west'];
  const BY_PRICE = ['a/one@west', 'a/one@east', 'a/one@local', 'b/two@east', 'b/two@west'];
  const BY_PRICE_OVER_ALL = ['b/two@east', 'a/one@west', 'a/one@east', 'b/two@west', 'a/one@local'];

  it.each<[Partial<ChatRequest>, string[]]>([
    [{}, AS_CONFIGURED],
    [{ route: 'sort' }, AS_CONFIGURED],
    [{ provider: { order: [] } }, AS_CONFIGURED],
    [{ provider: { sort: 'price' } }, BY_PRICE],
    [{ provider: { sort: { by: 'price', partition: null } } }, BY_PRICE],
    [{ provider: { sort: { by: 'price', partition: 'none' } } }, BY_PRICE_OVER_ALL],
    [{ provider: { sort: 'price' }, route: 'sort' }, BY_PRICE_OVER_ALL],
    [{ provider: { sort: 'price' }, route: 'fallback' }, BY_PRICE],
    [{ provider: { sort: { by: 'price', partition: 'model' } }, route: 'sort' }, BY_PRICE],
    [{ provider: { sort: 'throughput' } }, ['a/one@east', 'a/one@west', 'a/one@local', 'b/two@east', 'b/two@west']],
    [{ provider: { sort: 'latency' } }, ['a/one@west', 'a/one@east', 'a/one@local', 'b/two@west', 'b/two@east']],
    [{ provider: { sort: 'price', allow_fallbacks: false } }, ['a/one@west']],
    [{ provider: { sort: 'price', order: ['east'] } }, ['a/one@east', 'a/one@local', 'a/one@west', 'b/two@east', 'b/two@west']],
    [{ provider: { preferred_min_throughput: 40 } }, ['a/one@east', 'a/one@local', 'a/one@west', 'b/two@east', 'b/two@west']],
    [{ provider: { preferred_max_latency: { p50: 2, p90: 1 } } }, ['a/one@west', 'a/one@local', 'a/one@east', 'b/two@west', 'b/two@east']],
    [{ provider: { preferred_max_latency: 0.5, sort: { partition: 'none' } } }, ['b/two@west', 'a/one@local', 'a/one@east', 'a/one@west', 'b/two@east']],
  ])('DESIGN 8: candidates are tried in the order that %j asks for', (request, expected) => {
    expect(named(candidates(config, { models, ...request }))).toEqual(expected);
  });
});

describe('the request to an endpoint', () => {
  const requestTo = (endpoint: Partial<Endpoint>, request: Partial<ChatRequest>, maxTokens: number | null = null) =>
    candidates(configWith({ 'a/one': [endpoint] }), request, maxTokens)[0]?.request;

  it('has no parameters that it does not support, and none that depend on them', () => {
    const tools = [{ type: 'function' as const, function: { name: 'f' } }];
    const request = { temperature: 1, seed: null, tools, tool_choice: 'auto' as const, user: 'u', session_id: 's', top_k: 3, model: 'a/one' };
    expect(requestTo({ supported_parameters: ['temperature', 'tool_choice'] }, request)).toEqual({
      messages: [{ role: 'user', content: 'hi' }],
      temperature: 1,
      user: 'u',
      session_id: 's',
      model: 'a/one',
    });
  });

  it.each([
    ['the ceiling when the caller names no limit', {}, {}, 50, { max_tokens: 50 }],
    ['the caller’s limit below the ceiling', {}, { max_tokens: 20 }, 50, { max_tokens: 20 }],
    ['the ceiling below the caller’s limit', {}, { max_tokens: 80 }, 50, { max_tokens: 50 }],
    ['what the endpoint allows below the ceiling', { max_completion_tokens: 30 }, {}, 50, { max_tokens: 30 }],
    ['no ceiling that is beyond the endpoint’s context', { context_length: 40 }, {}, 50, {}],
    ['no limit when none is set', { max_completion_tokens: 30 }, {}, null, {}],
    ['the name that the caller used', {}, { max_completion_tokens: 20 }, null, { max_completion_tokens: 20 }],
    ['the name that the endpoint knows', { supported_parameters: ['max_completion_tokens'] }, { max_tokens: 20 }, null, { max_completion_tokens: 20 }],
    ['no limit to an endpoint that takes none', { supported_parameters: ['seed'] }, { max_tokens: 20 }, null, {}],
  ])('holds %s', (_, endpoint, request, maxTokens, expected) => {
    expect(requestTo(endpoint, request, maxTokens)).toEqual({ messages: [{ role: 'user', content: 'hi' }], ...expected });
  });
});

it('candidates have no accessors of their own, which would retain their call until a full collection', () => {
  const [candidate] = candidates(configWith({ 'a/one': [east] }));
  const own = Object.values(Object.getOwnPropertyDescriptors(candidate ?? {}));
  expect(own).not.toEqual([]);
  expect(own.filter(({ get }) => get !== undefined)).toEqual([]);
});
