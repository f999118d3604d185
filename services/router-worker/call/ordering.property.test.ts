import fc from 'fast-check';
import { expect, it } from 'vitest';
import { accountRulesOf } from '#shared/config/account-rules.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { slugsOf } from '#shared/config/slugs.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { HealthView } from './health-view.ts';
import { chosen } from './test-support/chosen.ts';

type Provider = NonNullable<ChatRequest['provider']>;

const TAGS = ['east', 'east/turbo', 'east/eu', 'west', 'west/turbo', 'north'];
const SLUGS = [...TAGS, 'elsewhere'];
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const price = fc.constantFrom('0', '0.5', '1', '2', '30');
const endpoint = fc.record({
  prices: maybe(fc.record({ prompt: price, completion: price })),
  quantization: maybe(fc.constantFrom('fp8' as const, 'int4' as const)),
  context_length: maybe(fc.constantFrom(100, 10_000)),
  supported_parameters: maybe(fc.subarray(['temperature', 'seed', 'tools'])),
  speed: maybe(fc.constant({ tokens_per_second: 50, first_token_seconds: 1 })),
});
const models = fc.array(fc.uniqueArray(fc.tuple(fc.constantFrom(...TAGS), endpoint), { minLength: 1, maxLength: 6, selector: ([tag]) => tag }), {
  minLength: 1,
  maxLength: 3,
});
const config = models.map((all) =>
  routerConfig.parse({
    providers: ['east', 'west', 'north'].map((slug) => ({ slug, kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' })),
    models: all.map((endpoints, at) => ({
      id: `a/${at}`,
      endpoints: endpoints.map(([tag, fields]) => ({ provider: tag.split('/')[0], tag, upstream_model: 'm', ...fields })),
    })),
    keys: [{ id: 'k', key: '${KEY}' }],
  }),
);
const slugs = fc.subarray(SLUGS);
const filters: fc.Arbitrary<Provider> = fc.record(
  {
    only: slugs,
    ignore: slugs,
    quantizations: fc.subarray(['fp8', 'int4', 'unknown'] as const),
    max_price: fc.record({ prompt: fc.constantFrom(0, 1, '2') }),
    data_collection: fc.constantFrom('allow' as const, 'deny' as const),
    zdr: fc.boolean(),
    require_parameters: fc.boolean(),
    min_throughput: fc.constantFrom(10, 100),
    max_latency: fc.constantFrom(0.5, 2),
  },
  { requiredKeys: [] },
);
const cutoff = fc.oneof(fc.constantFrom(0.1, 1, 1_000), fc.record({ p50: fc.constantFrom(1, 1_000), p99: fc.constantFrom(1, 1_000) }, { requiredKeys: [] }));
const preferences: fc.Arbitrary<Provider> = fc.record(
  {
    preferred_min_throughput: cutoff,
    preferred_max_latency: cutoff,
    order: slugs,
    sort: fc.constantFrom('price' as const, 'throughput' as const, 'latency' as const, { partition: 'none' as const }),
  },
  { requiredKeys: [] },
);
const request = fc.record(
  { seed: fc.constant(1), max_tokens: fc.constantFrom(1, 1_000), tools: fc.constant<NonNullable<ChatRequest['tools']>>([]) },
  { requiredKeys: [] },
);
const plain = fc.record({ seed: fc.constant(1), max_tokens: fc.constantFrom(1, 1_000) }, { requiredKeys: [] });
const seed = fc.string();

const named = ({ models: all }: ReturnType<typeof routerConfig.parse>) => all.map(({ id }) => id);
const sick: HealthView = {
  of: ({ tag }) => ({ isHealthy: tag !== 'east', isOpen: tag === 'west', tokensPerSecond: null, firstTokenSeconds: null }),
};
const ids = (all: readonly { id: string }[]) => all.map(({ id }) => id);

it('DESIGN 8: a filter, and a rule of the account, never adds a candidate', () => {
  fc.assert(
    // Without tools: endpoints that lack them come back when a filter leaves no other.
    fc.property(config, plain, filters, filters, slugs, (file, asked, one, other, ignored) => {
      const of = (provider: Provider, account = {}) =>
        new Set(ids(chosen(file, { ...asked, models: named(file), provider }, {}, { rules: accountRulesOf({ account }).of('k') }).candidates));
      const all = of({});
      const both = of({ ...one, ...other });

      for (const id of of(one)) expect(all).toContain(id);
      for (const id of of(one, { ignored_providers: ignored })) expect(of(one)).toContain(id);
      // What either excludes alone is excluded by both.
      const disjoint = Object.keys(one).every((name) => !(name in other));
      if (disjoint) for (const id of both) expect(of(one).has(id) && of(other).has(id)).toBe(true);
    }),
  );
});

it('a preference never empties the list, and removes no candidate', () => {
  fc.assert(
    fc.property(config, request, preferences, seed, (file, asked, provider, drawn) => {
      const of = (given: Provider, health = sick) =>
        ids(chosen(file, { ...asked, models: named(file), provider: given }, {}, { seed: drawn, health }).candidates);
      expect(of(provider).toSorted()).toEqual(of({}).toSorted());
    }),
  );
});

it('`order` is kept, model by model, whatever the health of its endpoints', () => {
  fc.assert(
    fc.property(config, fc.uniqueArray(fc.constantFrom(...SLUGS), { minLength: 1 }), fc.boolean(), seed, (file, order, mayFallBack, drawn) => {
      const asked = { models: named(file), provider: { order, allow_fallbacks: mayFallBack } };
      const { candidates } = chosen(file, asked, {}, { health: sick, seed: drawn });
      const rankOf = ({ id }: { id: string }) => {
        const slugsOfTag = slugsOf(id.slice(id.indexOf('@') + 1));
        const rank = order.findIndex((slug) => slugsOfTag.includes(slug));
        return rank < 0 ? order.length : rank;
      };
      const places = candidates.map((candidate) => [named(file).indexOf(candidate.model.id), rankOf(candidate)] as const);

      expect(places).toEqual(places.toSorted(([model, rank], [otherModel, otherRank]) => model - otherModel || rank - otherRank));
      if (!mayFallBack) expect(places.every(([, rank]) => rank < order.length)).toBe(true);
    }),
  );
});

it('DESIGN 8: the same seed gives the same order, and what is listed is what is tried', () => {
  fc.assert(
    fc.property(config, request, filters, preferences, seed, (file, asked, filter, preference, drawn) => {
      const choose = () => chosen(file, { ...asked, models: named(file), provider: { ...filter, ...preference } }, {}, { seed: drawn, health: sick });
      const { candidates, decision } = choose();

      expect(ids(choose().candidates)).toEqual(ids(candidates));
      expect(decision.candidates.map(({ endpoint: id }) => id)).toEqual(ids(candidates));
      const excluded = decision.excluded.flatMap(({ endpoints }) => endpoints);
      const known = file.models.flatMap(({ id, endpoints }) => endpoints.map(({ tag }) => `${id}@${tag}`));
      expect([...ids(candidates), ...excluded].toSorted()).toEqual(known.toSorted());
    }),
  );
});
