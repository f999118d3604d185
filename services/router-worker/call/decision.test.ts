import { describe, expect, it } from 'vitest';
import { routerConfig } from '#shared/config/router-config.ts';
import { noProvider } from './decision.ts';
import { chosen } from './test-support/chosen.ts';

const prices = (price: string) => ({ prices: { prompt: price, completion: price } });
const config = routerConfig.parse({
  providers: ['east', 'west', 'local'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [
    {
      id: 'a/one',
      aliases: ['one'],
      endpoints: [
        { provider: 'east', upstream_model: 'm', ...prices('2'), quantization: 'fp8' },
        { provider: 'west', tag: 'west/turbo', upstream_model: 'm', ...prices('4'), quantization: 'fp8' },
        { provider: 'local', upstream_model: 'm' },
      ],
    },
    { id: 'b/two', endpoints: [{ provider: 'local', upstream_model: 'm' }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});

describe('a decision', () => {
  it('says what was asked for, what was drawn with which weights, and what was excluded by which filter', () => {
    const { decision } = chosen(config, { model: 'one', models: ['x/none'], provider: { quantizations: ['fp8'] } }, {}, { seed: 'gen-7' });

    expect(decision).toEqual({
      requested: ['one', 'x/none'],
      strategy: 'weighted',
      sortedBy: null,
      seed: 'gen-7',
      candidates: expect.arrayContaining([
        { endpoint: 'a/one@east', health: 'healthy', price: 2, weight: 0.25 },
        { endpoint: 'a/one@west/turbo', health: 'healthy', price: 4, weight: 0.0625 },
      ]),
      excluded: [{ filter: 'quantization', endpoints: ['a/one@local'] }],
    });
    expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
  });

  it.each([
    [{ model: 'b/two' }, { strategy: 'single', candidates: [{ endpoint: 'b/two@local', price: null, weight: null }] }],
    [{ provider: { sort: 'price' as const } }, { strategy: 'sort', sortedBy: 'price', seed: null }],
    [{ provider: { order: ['local'] } }, { strategy: 'order', candidates: [{ endpoint: 'a/one@local', weight: null }, {}, {}] }],
    [{ provider: { only: ['local'] } }, { strategy: 'single', excluded: [{ filter: 'allowed_providers', endpoints: ['a/one@east', 'a/one@west/turbo'] }] }],
    [
      { provider: { sort: 'price' as const, allow_fallbacks: false } },
      { excluded: [{ filter: 'allow_fallbacks', endpoints: ['a/one@west/turbo', 'a/one@local'] }] },
    ],
  ])('for %j is %j', (request, expected) => {
    expect(chosen(config, request).decision).toMatchObject(expected);
  });

  it('without candidates becomes the error, which names the filters', () => {
    const { candidates, decision } = chosen(config, { provider: { only: ['elsewhere'] } });

    expect(candidates).toEqual([]);
    expect(noProvider(decision)).toMatchObject({
      code: 'router.no_provider',
      details: { excluded_by: [{ filter: 'allowed_providers', endpoints: ['a/one@east', 'a/one@west/turbo', 'a/one@local'] }] },
    });
  });

  it('lists no more than 64 endpoints at one place, and says how many more there are', () => {
    const slugs = Array.from({ length: 100 }, (_, at) => `p${at}`);
    const wide = routerConfig.parse({
      providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
      models: [{ id: 'a/one', endpoints: slugs.map((provider) => ({ provider, upstream_model: 'm' })) }],
      keys: [{ id: 'k', key: '${KEY}' }],
    });

    expect(chosen(wide).candidates).toHaveLength(100);
    expect(chosen(wide).decision).toMatchObject({ candidates: { length: 64 }, more: 36 });
    expect(chosen(wide, { provider: { zdr: true, only: ['none'] } }).decision.excluded).toMatchObject([{ endpoints: { length: 64 }, more: 36 }]);
  });
});
