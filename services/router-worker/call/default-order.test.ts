import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { configuredProviders } from '../providers/registry.ts';
import { catalogueOf } from './candidates.ts';
import type { HealthView } from './health-view.ts';
import { chosen } from './test-support/chosen.ts';

/** `a/one` with an endpoint per provider: a slug, and USD per million tokens of prompt and completion alike; null: unknown. */
function configOf(prices: Record<string, string | null>, model: object = {}) {
  const slugs = Object.keys(prices);
  return routerConfig.parse({
    providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
    models: [
      {
        id: 'a/one',
        endpoints: slugs.map((provider) => {
          const price = prices[provider];
          return { provider, upstream_model: 'm', ...(price !== null && { prices: { prompt: price, completion: price } }) };
        }),
        ...model,
      },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
}

/** Slugs in the order of the candidates, for each of so many calls. */
function ordersOf(config: ReturnType<typeof configOf>, calls: number, request: Partial<ChatRequest> = {}, circumstances: object = {}): string[][] {
  const seeds = Array.from({ length: calls }, (_, call) => `gen-gw1-01JD${String(call).padStart(22, '0')}-0123456789abcdef0123`);
  const catalogue = catalogueOf(config, configuredProviders(config));
  return seeds.map((seed) => chosen(config, request, {}, { seed, catalogue, ...circumstances }).candidates.map(({ provider }) => provider.slug));
}

function shareOf(orders: readonly string[][], place: number, slug: string): number {
  return orders.filter((order) => order[place] === slug).length / orders.length;
}

const down = (...slugs: string[]): HealthView => ({
  of: ({ tag }) => ({ isHealthy: !slugs.includes(tag), isOpen: false, tokensPerSecond: null, firstTokenSeconds: null }),
});
const open = (...slugs: string[]): HealthView => ({
  of: ({ tag }) => ({ isHealthy: !slugs.includes(tag), isOpen: slugs.includes(tag), tokensPerSecond: null, firstTokenSeconds: null }),
});

describe('the draw', () => {
  it('DESIGN 8: of prices 1 and 3 the first is drawn nine times as often, within 1 %', () => {
    const orders = ordersOf(configOf({ cheap: '1', dear: '3' }), 100_000);

    expect(Math.abs(shareOf(orders, 0, 'cheap') - 0.9)).toBeLessThan(0.009);
    expect(Math.abs(shareOf(orders, 0, 'dear') - 0.1)).toBeLessThan(0.009);
  });

  it('is without replacement: fallbacks are drawn by price as well', () => {
    const orders = ordersOf(configOf({ one: '1', two: '2', three: '3' }), 50_000);
    const [first, second, third] = [1, 1 / 4, 1 / 9];
    const total = first + second + third;

    expect(shareOf(orders, 0, 'one')).toBeCloseTo(first / total, 1.8);
    // Second: behind `two` or behind `three`.
    expect(shareOf(orders, 1, 'one')).toBeCloseTo((second / total) * (first / (first + third)) + (third / total) * (first / (first + second)), 1.8);
    expect(new Set(orders.map((order) => order.toSorted().join()))).toEqual(new Set(['one,three,two']));
  });

  it('router-facts 5.2: endpoints with an outage are behind all healthy ones, and the others share as without them', () => {
    const orders = ordersOf(configOf({ a: '1', b: '2', c: '3' }), 20_000, {}, { health: down('b') });

    expect(shareOf(orders, 2, 'b')).toBe(1);
    expect(shareOf(orders, 0, 'a')).toBeCloseTo(0.9, 1.5);
  });

  it('puts endpoints that would fail behind those with an outage', () => {
    const health: HealthView = { of: (endpoint) => (endpoint.tag === 'a' ? open('a').of(endpoint) : down('b').of(endpoint)) };
    expect(ordersOf(configOf({ a: '0', b: '1', c: '9' }), 1, {}, { health })).toEqual([['c', 'b', 'a']]);
  });

  it('puts free endpoints first, which share equally, and those of unknown price last, in the order of the file', () => {
    const orders = ordersOf(configOf({ later: null, dear: '9', free: '0', last: null, gratis: '0' }), 20_000);

    expect(shareOf(orders, 0, 'free')).toBeCloseTo(0.5, 1.5);
    expect(shareOf(orders, 0, 'gratis')).toBeCloseTo(0.5, 1.5);
    expect(new Set(orders.map((order) => order.slice(2).join()))).toEqual(new Set(['dear,later,last']));
  });

  it('weighs the prices by what the request has of each', () => {
    const config = routerConfig.parse({
      providers: ['talks', 'reads'].map((slug) => ({ slug, kind: 'scripted' })),
      models: [
        {
          id: 'a/one',
          endpoints: [
            { provider: 'talks', upstream_model: 'm', prices: { prompt: '3', completion: '1' } },
            { provider: 'reads', upstream_model: 'm', prices: { prompt: '1', completion: '3' } },
          ],
        },
      ],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    const long = [{ role: 'user' as const, content: 'x'.repeat(200_000) }];

    expect(shareOf(ordersOf(config, 2_000), 0, 'talks')).toBeGreaterThan(0.85);
    expect(shareOf(ordersOf(config, 200, { messages: long }), 0, 'reads')).toBeGreaterThan(0.8);
    expect(shareOf(ordersOf(config, 2_000, { messages: [{ role: 'user', content: 'x'.repeat(400) }], max_tokens: 1 }), 0, 'reads')).toBeGreaterThan(0.85);
  });

  it('counts what a request and its pictures cost', () => {
    const prices = { prompt: '1', completion: '1' };
    const config = routerConfig.parse({
      providers: ['flat', 'each'].map((slug) => ({ slug, kind: 'scripted' })),
      models: [
        {
          id: 'a/one',
          endpoints: [
            { provider: 'flat', upstream_model: 'm', prices: { ...prices, request: '1' } },
            { provider: 'each', upstream_model: 'm', prices: { ...prices, image: '5' } },
          ],
        },
      ],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    const picture = { type: 'image_url' as const, image_url: { url: 'https://a.test/x.png' } };

    expect(shareOf(ordersOf(config, 500), 0, 'each')).toBe(1);
    expect(shareOf(ordersOf(config, 500, { messages: [{ role: 'user', content: [picture] }] }), 0, 'flat')).toBeGreaterThan(0.9);
  });

  it('gives the same order for the same seed, and orders two endpoints alike whatever else is drawn', () => {
    const slug = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
    const price = fc.option(fc.constantFrom('0', '0.5', '1', '2', '30'));
    fc.assert(
      fc.property(fc.dictionary(slug, price, { minKeys: 2 }), fc.string(), (prices, seed) => {
        const of = (given: typeof prices) => chosen(configOf(given), {}, {}, { seed }).candidates.map(({ provider }) => provider.slug);
        const all = of(prices);
        const [left = ''] = Object.keys(prices);
        const { [left]: _, ...rest } = prices;

        expect(of(prices)).toEqual(all);
        expect(of(rest)).toEqual(all.filter((one) => one !== left));
      }),
    );
  });
});

it('router-facts 5.1: an explicit sort puts only endpoints behind that would fail', () => {
  const config = configOf({ cheap: '1', dear: '9' });
  const sorted = { provider: { sort: 'price' as const } };

  expect(ordersOf(config, 1, sorted, { health: down('cheap') })).toEqual([['cheap', 'dear']]);
  expect(ordersOf(config, 1, sorted, { health: open('cheap') })).toEqual([['dear', 'cheap']]);
});

describe('the order of the file', () => {
  it('is kept for a model that demands it, but for endpoints with an outage', () => {
    const config = configOf({ dear: '9', free: '0', unknown: null }, { order: 'file' });

    expect(ordersOf(config, 1)).toEqual([['dear', 'free', 'unknown']]);
    expect(ordersOf(config, 1, {}, { health: down('dear') })).toEqual([['free', 'unknown', 'dear']]);
    expect(chosen(config).decision).toMatchObject({ strategy: 'configured', seed: null });
  });

  it('is kept where no price is known', () => {
    expect(ordersOf(configOf({ b: null, a: null }), 1)).toEqual([['b', 'a']]);
  });
});

describe('the endpoint that served the conversation last', () => {
  const config = configOf({ dear: '900', cheap: '1' });
  const stickyTo = 'a/one@dear';

  it('is first, unless it has an outage', () => {
    expect(ordersOf(config, 50, {}, { stickyTo }).map(([first]) => first)).toEqual(Array(50).fill('dear'));
    expect(chosen(config, {}, {}, { stickyTo }).decision).toMatchObject({ strategy: 'sticky', candidates: [{ endpoint: stickyTo, sticky: true }, {}] });
    expect(ordersOf(config, 1, {}, { stickyTo, health: down('dear') })).toEqual([['cheap', 'dear']]);
  });

  it.each<Partial<ChatRequest>>([{ provider: { sort: 'price' } }, { provider: { order: ['cheap'] } }, { provider: { order: ['elsewhere'] } }])(
    'is not preferred when the caller states %j',
    (request) => {
      expect(ordersOf(config, 1, request, { stickyTo })).toEqual([['cheap', 'dear']]);
    },
  );
});
