import { describe, expect, it } from 'vitest';
import { routerConfig } from '#shared/config/router-config.ts';
import { chatRequest } from '#shared/contracts/router/chat-request.ts';
import { ignoredFields } from './ignored-fields.ts';
import { testConfig } from './test-support/harness.ts';

const hello = { messages: [{ role: 'user', content: 'Hello' }] };
const ignoredIn = ignoredFields(testConfig);
const ignored = (fields: Record<string, unknown>) => ignoredIn(chatRequest.parse({ ...hello, ...fields }));
const mark = { cache_control: { type: 'ephemeral' } };

describe('unsupported fields of a request', () => {
  it.each<[string, Record<string, unknown>, string]>([
    [
      'each plugin without a stage that is asked for, with its id',
      { plugins: [{ id: 'newer' }, { id: 'file-parser' }, { id: 'new one' }, { id: 'response-healing' }, { id: 'web', max_results: 1 }] },
      'plugins[0]=newer, plugins[2]=new%20one, plugins[3]=response-healing',
    ],
    [
      'response-healing of a stream',
      { stream: true, response_format: { type: 'json_object' }, plugins: [{ id: 'response-healing' }] },
      'plugins[0]=response-healing',
    ],
    ['unknown parameters', { temprature: 0, 'x.y,\r\n': 1 }, 'temprature, x.y%2C%0D%0A'],
    [
      'unknown preferences',
      { provider: { prefer: 'x', sort: { by: 'price', how: 1 }, max_price: { video: 1 } } },
      'provider.prefer, provider.sort.how, provider.max_price.video',
    ],
    ['fields of other routers', { n: 2, transforms: [] }, 'n, transforms'],
    ['unknown members of reasoning', { reasoning: { summary: 'auto', deep: true } }, 'reasoning.deep'],
    ['other fields of the debug option', { debug: { echo_upstream_body: true, verbose: true } }, 'debug.verbose'],
  ])('is named by its path: %s', (_, fields, header) => {
    expect(ignored(fields)?.split(', ').toSorted()).toEqual(header.split(', ').toSorted());
  });

  it.each<[string, Record<string, unknown>]>([
    ['a plain request', { model: 'acme/large', stream: true, max_tokens: 5, temperature: 0, user: 'u' }],
    [
      'preferences and parameters that are carried out',
      { provider: { order: ['x'], sort: 'price', max_price: { prompt: 1 } }, route: 'sort', top_k: 4, n: 1, modalities: ['text'] },
    ],
    ['what groups and describes requests', { session_id: 's', user: 'u', metadata: { a: 'b' }, trace: { trace_id: 't' } }],
    [
      'what some upstreams have',
      {
        ...mark,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'a', ...mark }] }],
        tools: [{ type: 'function', function: { name: 'f' }, ...mark }],
        reasoning: { summary: 'auto', effort: 'low' },
        modalities: ['text', 'image'],
        image_config: { aspect_ratio: '16:9' },
      },
    ],
    [
      'response-healing of whole JSON, and moderation',
      { response_format: { type: 'json_object' }, plugins: [{ id: 'response-healing' }, { id: 'moderation' }] },
    ],
    ['a tool', { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'auto' }],
    ['nothing, in empty fields', { provider: null, logit_bias: null, vendor_thing: null, plugins: [] }],
  ])('is nothing: %s', (_, fields) => {
    expect(ignored(fields)).toBeNull();
  });

  it('is the debug echo where the operator has switched it off', () => {
    const echoing = chatRequest.parse({ ...hello, debug: { echo_upstream_body: true } });
    expect(ignoredIn(echoing)).toBeNull();
    expect(ignoredFields({ ...testConfig, debug_echo: false })(echoing)).toBe('debug.echo_upstream_body');
  });

  it('is no parameter that an endpoint lists as supported', () => {
    const [model] = testConfig.models;
    if (model === undefined) throw new Error('the configuration has no model');
    const endpoints = model.endpoints.map((endpoint) => ({ ...endpoint, supported_parameters: ['vendor_thing'] }));
    const declaring = ignoredFields({ ...testConfig, models: [{ ...model, endpoints }] });
    expect(declaring(chatRequest.parse({ ...hello, vendor_thing: 1, other_thing: 1 }))).toBe('other_thing');
  });

  it('is a parameter that no endpoint of the models asked for can be sent', () => {
    const endpointAt = (provider: string, supported?: string[]) => ({ provider, upstream_model: 'm', ...(supported && { supported_parameters: supported }) });
    const config = routerConfig.parse({
      providers: [
        { slug: 'ant', kind: 'anthropic', api_key: '${KEY}' },
        { slug: 'gem', kind: 'gemini', api_key: '${KEY}' },
        { slug: 'local', kind: 'openai-compatible' },
      ],
      models: [
        { id: 'a/one', endpoints: [endpointAt('ant', ['seed', 'my_own'])] },
        { id: 'a/two', endpoints: [endpointAt('ant'), endpointAt('gem')] },
        { id: 'a/open', endpoints: [endpointAt('ant'), endpointAt('local')] },
      ],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    const request = chatRequest.parse({
      ...{ ...hello, seed: 1, logit_bias: { 5: 1 }, service_tier: 'flex', my_own: 1, temperature: 1, user: 'u' },
      ...{ parallel_tool_calls: true, frequency_penalty: 0, logprobs: false },
    });
    const ignoredAt = (...ids: string[]) => ignoredFields(config)(request, { asked: config.models.filter(({ id }) => ids.includes(id)) });

    expect(ignoredAt('a/one')).toBe('logit_bias, seed, service_tier, my_own');
    expect(ignoredAt('a/two'), 'Gemini takes a seed').toBe('logit_bias, service_tier, my_own');
    expect(ignoredAt('a/one', 'a/open')).toBeNull();
  });

  it('is the options of a provider that gets none, or that there is not', () => {
    const providers = [
      { slug: 'east', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' },
      { slug: 'ant', kind: 'anthropic', api_key: '${KEY}' },
    ];
    const options = { provider_options: { east: { store: false }, ant: { own: 1 }, eats: { own: 1 } } };
    expect(ignoredFields({ ...testConfig, providers })(chatRequest.parse({ ...hello, ...options }))).toBe('provider_options.ant, provider_options.eats');
  });

  it('is a tier without a price, of a request whose cost is reserved', () => {
    const [model] = testConfig.models;
    if (model === undefined) throw new Error('the configuration has no model');
    const prices = { prompt: '1', completion: '1', tiers: { priority: { prompt: '2', completion: '2' } } };
    const asked = [{ ...model, endpoints: model.endpoints.map((endpoint) => ({ ...endpoint, prices })) }];
    const east = { slug: 'scripted', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' };
    const ofEast = ignoredFields({ ...testConfig, providers: [east] });
    const headerFor = (fields: object, isReserved = true) => ofEast(chatRequest.parse({ ...hello, ...fields }), { asked, isReserved });

    expect(headerFor({ service_tier: 'flex' })).toBe('service_tier');
    expect(headerFor({ provider_options: { scripted: { service_tier: 'flex' } } })).toBe('provider_options.scripted.service_tier');
    expect(headerFor({ service_tier: 'flex' }, false)).toBeNull();
    for (const tier of ['priority', 'auto', 'default']) expect(headerFor({ service_tier: tier })).toBeNull();
  });

  it('is named in at most 1 KiB, whatever the names, in the letters of a header', () => {
    const odd = ['\u{1F600}'.repeat(80), '\ud800', 'ü', 'a b', '"', '%', '__proto__x'];
    expect(ignored(Object.fromEntries(odd.map((name) => [name, 1])))).toMatch(/^[\x21-\x7e]+(, [\x21-\x7e]+)*$/);
    const many = ignored({ plugins: Array.from({ length: 32 }, () => ({ id: 'unknown'.repeat(8) })), ...Object.fromEntries(odd.map((name) => [name, 1])) });
    expect(many?.length).toBeLessThanOrEqual(1_024);
    expect(many).toMatch(/^plugins\[0\]=unknown.*, \.\.\.$/);
  });
});
