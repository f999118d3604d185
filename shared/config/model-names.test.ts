import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { modelNamesOf } from './model-names.ts';
import { type RouterConfig, routerConfig } from './router-config.ts';
import { withSuffixEffects } from './suffix-effects.ts';

type Price = { prompt: string; completion: string; request?: string } | null;
const free: Price = { prompt: '0', completion: '0.0' };
const paid: Price = { prompt: '1', completion: '2' };

function configOf(models: Record<string, Price[]>, aliases: Record<string, string[]> = {}): RouterConfig {
  return routerConfig.parse({
    providers: [{ slug: 'local', kind: 'scripted' }],
    models: Object.entries(models).map(([id, prices]) => ({
      id,
      aliases: aliases[id] ?? [],
      endpoints: prices.map((given, index) => ({ provider: 'local', upstream_model: `${id}-${index}`, ...(given !== null && { prices: given }) })),
    })),
    keys: [{ id: 'k', key: '${KEY}' }],
  });
}

const names = modelNamesOf(
  configOf(
    {
      'a/plain': [paid, null],
      'a/mixed': [paid, free, null],
      'a/free': [free],
      'a/varied': [paid],
      'a/varied:free': [free],
      'a/varied:thinking': [paid],
      'a/varied:free:extended': [free],
      'a/llama:8b': [paid],
      'b/quick:nitro': [paid],
      'b/quick': [paid],
    },
    { 'a/plain': ['plain', 'plain:best'], 'a/mixed': ['b/quick:exacto'] },
  ),
);
/** The model and its endpoints, the effects as fields. */
function resolved(name: string, fields: Partial<ChatRequest> = {}) {
  const found = names.resolve(name);
  if (found === null) return null;
  const { messages: _, model: __, ...rest } = withSuffixEffects({ messages: [], model: name, ...fields }, 'chat', names);
  return { id: found.model.id, endpoints: found.model.endpoints.length, ...rest };
}

describe('the suffixes of a model name (router-facts 5.6)', () => {
  const plain = { id: 'a/plain', endpoints: 2 };
  const web = { plugins: [{ id: 'web' }] };

  it.each<[string, string, object | null]>([
    ['none', 'a/plain', plain],
    [':nitro sorts by throughput', 'a/plain:nitro', { ...plain, provider: { sort: 'throughput' } }],
    [':floor sorts by price', 'b/quick:floor', { id: 'b/quick', endpoints: 1, provider: { sort: 'price' } }],
    [':exacto sorts by quality', 'a/plain:exacto', { ...plain, provider: { sort: 'exacto' } }],
    [':online adds the web plugin', 'a/plain:online', { ...plain, ...web }],
    [':free is the configured variant', 'a/varied:free', { id: 'a/varied:free', endpoints: 1 }],
    [':free without a variant: the endpoints that cost nothing', 'a/mixed:free', { id: 'a/mixed', endpoints: 1 }],
    [':free of a model that is free', 'a/free:free', { id: 'a/free', endpoints: 1 }],
    [':free of a model without such endpoints is not known', 'a/plain:free', null],
    [':thinking is the configured variant', 'a/varied:thinking', { id: 'a/varied:thinking', endpoints: 1 }],
    [':thinking without a variant turns reasoning on', 'a/plain:thinking', { ...plain, reasoning: { enabled: true } }],
    [':extended is the configured variant', 'a/varied:extended:free', { id: 'a/varied:free:extended', endpoints: 1 }],
    [':extended without a variant is not known', 'a/plain:extended', null],
    ['stacked', 'a/varied:free:online', { id: 'a/varied:free', endpoints: 1, ...web }],
    ['stacked in another order', 'a/varied:online:free', { id: 'a/varied:free', endpoints: 1, ...web }],
    [
      'all that go together',
      'a/mixed:online:nitro:thinking:free',
      {
        ...{ id: 'a/mixed', endpoints: 1, ...web, provider: { sort: 'throughput' } },
        reasoning: { enabled: true },
      },
    ],
    ['twice the same', 'a/plain:nitro:nitro', { ...plain, provider: { sort: 'throughput' } }],
    ['the configured name with a suffix wins', 'b/quick:nitro', { id: 'b/quick:nitro', endpoints: 1 }],
    ['and has the others', 'b/quick:online:nitro', { id: 'b/quick:nitro', endpoints: 1, ...web }],
    ['the configured alias with a suffix wins', 'b/quick:exacto', { id: 'a/mixed', endpoints: 3 }],
    ['a colon of the name itself', 'a/llama:8b', { id: 'a/llama:8b', endpoints: 1 }],
    ['a suffix behind it', 'a/llama:8b:floor', { id: 'a/llama:8b', endpoints: 1, provider: { sort: 'price' } }],
    ['an alias without a slash', 'plain:nitro', { ...plain, provider: { sort: 'throughput' } }],
    ['an alias with a colon', 'plain:best:floor', { ...plain, provider: { sort: 'price' } }],
    ['a word that is no suffix', 'a/plain:fast', null],
    ['an unknown model', 'a/none:nitro', null],
    ['nothing before the suffix', ':nitro', null],
    ['before the slash is no suffix', 'a:nitro/plain', null],
  ])('%s: %s', (_, name, expected) => {
    expect(resolved(name)).toEqual(expected);
  });

  it.each<[string, string, Partial<ChatRequest>, Partial<ChatRequest>]>([
    ['a sort', 'a/plain:nitro', { provider: { sort: 'price' } }, { provider: { sort: 'price' } }],
    ['a sort as an object', 'a/plain:nitro', { provider: { sort: { by: 'latency' } } }, { provider: { sort: { by: 'latency' } } }],
    [
      'no sort, but a partition',
      'a/plain:nitro',
      { provider: { sort: { partition: 'none' } } },
      { provider: { sort: { partition: 'none', by: 'throughput' } } },
    ],
    ['other preferences', 'a/plain:floor', { provider: { zdr: true, sort: null } }, { provider: { zdr: true, sort: 'price' } }],
    ['no preferences', 'a/plain:floor', { provider: null }, { provider: { sort: 'price' } }],
    ['the plugin, switched off', 'a/plain:online', { plugins: [{ id: 'web', enabled: false }] }, { plugins: [{ id: 'web', enabled: false }] }],
    ['another plugin', 'a/plain:online', { plugins: [{ id: 'moderation' }] }, { plugins: [{ id: 'moderation' }, { id: 'web' }] }],
    ['reasoning', 'a/plain:thinking', { reasoning: { effort: 'low' } }, { reasoning: { effort: 'low' } }],
    ['reasoning in the form of OpenAI', 'a/plain:thinking', { reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
    ['reasoning in the legacy form', 'a/plain:thinking', { include_reasoning: false }, { include_reasoning: false }],
  ])('give way to fields of the request: %s', (_, name, fields, expected) => {
    expect(resolved(name, fields)).toMatchObject(expected);
    expect(Object.keys(resolved(name, fields) ?? {}).toSorted()).toEqual(['endpoints', 'id', ...Object.keys(expected)].toSorted());
  });

  it('count for the whole request, of several orders the first, whichever of its models is asked', () => {
    const request = { messages: [], model: 'a/none:exacto', models: ['a/plain', 'a/mixed:floor:online', 'a/plain:exacto'] };
    expect(withSuffixEffects(request, 'chat', names)).toEqual({ ...request, provider: { sort: 'price' }, ...web });
  });

  it('change nothing twice, and nothing where there are none', () => {
    const once = withSuffixEffects({ messages: [], model: 'a/plain:nitro:online:thinking' }, 'chat', names);
    expect(withSuffixEffects(once, 'chat', names)).toEqual(once);
    const request = { messages: [], models: ['a/plain', 'a/llama:8b', 'b/quick:nitro'] };
    expect(withSuffixEffects(request, 'chat', names)).toBe(request);
  });

  it('are refused where they contradict each other, and where an embedding has none of them', () => {
    const of =
      (request: Partial<ChatRequest>, use: 'chat' | 'vectors' = 'chat') =>
      () =>
        withSuffixEffects({ messages: [], ...request }, use, names);
    expect(of({ model: 'a/plain:nitro:floor' })).toThrow('model :nitro and :floor ask for two orders of the endpoints: use one of them');
    expect(of({ models: ['a/plain:floor:exacto'] })).toThrow(expect.objectContaining({ code: 'request.invalid', details: { param: 'models' } }));
    expect(of({ model: 'a/plain:online' }, 'vectors')).toThrow('model :online has no meaning for embeddings');
    expect(of({ model: 'a/plain:thinking' }, 'vectors')).toThrow(':thinking');
    expect(of({ model: 'a/plain:floor' }, 'vectors')()).toMatchObject({ provider: { sort: 'price' } });
  });

  it('of a hostile name cost no more than its length', () => {
    expect(names.resolve(`a/${':nitro'.repeat(100_000)}`)).toBeNull();
    expect(names.resolve(':'.repeat(1_000_000))).toBeNull();
  });
});

it('lists the models that are derived behind those configured, with the endpoints that cost nothing', () => {
  expect(names.models.slice(-1).map(({ id, endpoints }) => [id, endpoints.map((endpoint) => endpoint.upstream_model)])).toEqual([['a/mixed', ['a/mixed-1']]]);
  expect(names.models).toHaveLength(11);
});
