import { describe, expect, it } from 'vitest';
import { usageDecision } from '#bus/messages/usage-decision.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Choice } from './call/candidates.ts';
import type { HealthView } from './call/health-view.ts';
import { chosen } from './call/test-support/chosen.ts';
import { MAX_RECORDED_ENDPOINTS, recordedDecisionOf } from './recorded-decision.ts';

const priced = (provider: string, price: string, more: object = {}) => ({
  provider,
  upstream_model: 'm',
  prices: { prompt: price, completion: price },
  ...more,
});
const plain = (provider: string, more: object = {}) => ({ provider, upstream_model: 'm', ...more });
const parsed = (models: object[]): RouterConfig =>
  routerConfig.parse({ providers: ['east', 'west', 'local'].map((slug) => ({ slug, kind: 'scripted' })), models, keys: [{ id: 'k', key: '${KEY}' }] });
const config = parsed([
  { id: 'a/one', aliases: ['one'], endpoints: [priced('east', '2'), priced('west', '4', { tag: 'west/turbo' })] },
  { id: 'b/two', endpoints: [plain('local')] },
  { id: 'c/own', endpoints: [plain('local', { tag: 'local/own' })] },
  { id: 'd/file', order: 'file', endpoints: [priced('east', '2'), priced('west', '1')] },
]);
const attemptsOf = ({ candidates }: Choice, ...places: number[]) =>
  places.map((place) => {
    const candidate = candidates[place];
    if (candidate === undefined) throw new Error(`there is no candidate ${place}`);
    return { candidate };
  });

function recorded(request: Partial<ChatRequest>, circumstances: object = {}) {
  const choice = chosen(config, request, {}, circumstances);
  const decision = recordedDecisionOf(choice, attemptsOf(choice, ...(choice.candidates.length === 0 ? [] : [0])));
  if (decision !== null) expect(usageDecision.parse(JSON.parse(JSON.stringify(decision)))).toEqual(decision);
  return decision;
}

const outage: HealthView = {
  of: ({ tag }) => ({ isHealthy: tag !== 'east', isOpen: false, tokensPerSecond: null, firstTokenSeconds: null }),
};

describe('the decision of a record', () => {
  it('is null where one endpoint was eligible, and the rest of the record says which', () => {
    expect(recorded({ model: 'b/two' })).toBeNull();
  });

  it.each<[string, Partial<ChatRequest>, object, object]>([
    [
      'weighted',
      { model: 'one' },
      {},
      {
        strategy: 'weighted',
        drawn: true,
        requested: ['one'],
        candidates: expect.arrayContaining([
          { endpoint: 'a/one@east', health: 'healthy', price: 2, weight: 0.25 },
          { endpoint: 'a/one@west/turbo', health: 'healthy', price: 4, weight: 0.0625 },
        ]),
      },
    ],
    [
      'weighted, with an outage',
      { model: 'a/one' },
      { health: outage },
      { candidates: [{ endpoint: 'a/one@west/turbo' }, { endpoint: 'a/one@east', health: 'unhealthy' }] },
    ],
    ['sticky', { model: 'a/one' }, { stickyTo: 'a/one@west/turbo' }, { strategy: 'sticky', candidates: [{ endpoint: 'a/one@west/turbo', sticky: true }, {}] }],
    [
      'sort',
      { model: 'a/one', provider: { sort: 'price' } },
      {},
      { strategy: 'sort', sortedBy: 'price', candidates: [{ endpoint: 'a/one@east', price: 2 }, {}] },
    ],
    ['order', { model: 'a/one', provider: { order: ['west'] } }, {}, { strategy: 'order', candidates: [{ endpoint: 'a/one@west/turbo' }, {}] }],
    ['configured', { model: 'd/file' }, {}, { strategy: 'configured', candidates: [{ endpoint: 'd/file@east' }, {}] }],
    [
      'single, for an exclusion',
      { model: 'a/one', provider: { only: ['west'] } },
      {},
      {
        strategy: 'single',
        candidates: [{ endpoint: 'a/one@west/turbo' }],
        excluded: [{ filter: 'allowed_providers', endpoints: ['a/one@east'] }],
      },
    ],
    ['single, for a tag of its own', { model: 'c/own' }, {}, { strategy: 'single', candidates: [{ endpoint: 'c/own@local/own' }], tried: [0] }],
    [
      'of no candidate',
      { model: 'a/one', provider: { only: ['local'] } },
      {},
      {
        candidates: [],
        tried: [],
        excluded: [{ filter: 'allowed_providers', endpoints: ['a/one@east', 'a/one@west/turbo'] }],
      },
    ],
  ])('%s', (_, request, circumstances, expected) => {
    expect(recorded(request, circumstances)).toMatchObject(expected);
  });

  it('says at which places the endpoints of the attempts were, and of endpoints with one name which', () => {
    const alike = parsed([{ id: 'a/one', endpoints: [plain('local'), plain('local')] }]);
    const choice = chosen(alike);

    expect(recordedDecisionOf(choice, attemptsOf(choice, 0, 0, 1))).toMatchObject({ tried: [0, 0, 1], candidates: [{}, {}] });
  });

  it('has a bounded size, whatever a request names and however many endpoints there are', () => {
    const slugs = Array.from({ length: 90 }, (_, at) => `p${at}`);
    const wide = routerConfig.parse({
      providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
      models: [{ id: 'a/one', endpoints: slugs.map((slug) => priced(slug, '1', slug > 'p5' ? { quantization: 'fp8' } : {})) }],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    const names = ['a/one', ...Array.from({ length: 99 }, (_, at) => `${at}\0\ud800${'x'.repeat(10_000)}`)];
    const all = recordedDecisionOf(chosen(wide, { models: names }), []);
    const some = recordedDecisionOf(chosen(wide, { provider: { quantizations: ['fp8'] } }), []);

    expect(all).toMatchObject({ candidates: { length: MAX_RECORDED_ENDPOINTS }, more: 90 - MAX_RECORDED_ENDPOINTS, requested: { length: 8 } });
    expect(JSON.stringify(all)).not.toMatch(/\\u0000|\\ud800/);
    expect(JSON.stringify(all).length).toBeLessThan(4_096);
    const [{ endpoints, more } = { endpoints: [], more: 0 }] = some?.excluded ?? [];
    expect([endpoints.length, endpoints.length + (more ?? 0) + (some?.candidates.length ?? 0) + (some?.more ?? 0)]).toEqual([MAX_RECORDED_ENDPOINTS, 90]);
  });
});
