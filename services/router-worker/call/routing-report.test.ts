import { describe, expect, it } from 'vitest';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { configuredProviders } from '../providers/registry.ts';
import { type Candidate, catalogueOf } from './candidates.ts';
import { RoutingReport } from './routing-report.ts';
import { chosen } from './test-support/chosen.ts';

const endpoint = (provider: string, price: string) => ({ provider, upstream_model: 'm', prices: { prompt: price, completion: price } });
const providers = [
  { slug: 'east', name: 'East', kind: 'scripted' },
  { slug: 'west', name: 'West', kind: 'scripted' },
];
const parsed = (models: object[]): RouterConfig => routerConfig.parse({ providers, models, keys: [{ id: 'k', key: '${KEY}' }] });
const config = parsed([
  { id: 'a/one', aliases: ['one'], endpoints: [endpoint('east', '1'), endpoint('west', '3')] },
  { id: 'b/two', endpoints: [endpoint('west', '1')] },
]);
const down = new SwitchyardError('router.provider_overloaded', 'busy');

/** @param outcomes of the attempts at the candidates, in order: null, it answered */
function reportOf(request: Partial<ChatRequest>, outcomes: readonly unknown[], of = config) {
  const choice = chosen(of, request);
  const report = new RoutingReport({ ...request });
  report.decided(choice, catalogueOf(of, configuredProviders(of)).names);
  let selected: Candidate | null = null;
  for (const [at, error] of outcomes.entries()) {
    const candidate = choice.candidates[at];
    if (candidate === undefined) throw new Error(`there is no candidate ${at}`);
    report.attempted({ candidate, error });
    if (error === null) selected = candidate;
  }
  return report.metadata(selected);
}

describe('the metadata of an answer', () => {
  it('has what real clients require, and the attempts', () => {
    expect(reportOf({ model: 'a/one', provider: { sort: 'price' } }, [down, null])).toEqual({
      requested: 'a/one',
      strategy: 'direct',
      region: null,
      summary: 'available=2, selected=West, order=sort:price',
      attempt: 2,
      is_byok: false,
      endpoints: {
        total: 2,
        available: [
          { provider: 'East', model: 'a/one', selected: false },
          { provider: 'West', model: 'a/one', selected: true },
        ],
      },
      attempts: [
        { provider: 'East', model: 'a/one', status: 503 },
        { provider: 'West', model: 'a/one', status: 200 },
      ],
    });
  });

  it.each<[string, Partial<ChatRequest>, unknown[], object]>([
    ['by its id', { model: 'b/two' }, [null], { requested: 'b/two', strategy: 'direct', summary: 'available=1, selected=West, order=single' }],
    ['by its id and a suffix', { model: 'a/one:nitro' }, [null], { requested: 'a/one:nitro', strategy: 'direct' }],
    ['by another name', { model: 'one' }, [null], { requested: 'one', strategy: 'alias' }],
    ['as the default', {}, [null], { requested: 'a/one', strategy: 'direct' }],
    ['as a later model', { models: ['b/two', 'one'] }, [down, null], { requested: 'b/two', strategy: 'fallback', attempt: 2 }],
    ['as a later model, since the first is not known', { models: ['x/none', 'b/two'] }, [null], { requested: 'x/none', strategy: 'fallback' }],
    ['as the first of several', { models: ['b/two', 'a/one'] }, [null], { strategy: 'direct', attempt: 1 }],
    ['by order', { model: 'a/one', provider: { order: ['west'] } }, [null], { summary: 'available=2, selected=West, order=order' }],
    ['by a draw', { model: 'a/one' }, [null], { summary: expect.stringMatching(/^available=2, selected=(East|West), order=weighted$/) }],
    [
      'among the rest',
      { model: 'a/one', provider: { ignore: ['east'] } },
      [null],
      { endpoints: { total: 2, available: [{ provider: 'West' }] }, summary: 'available=1, selected=West, order=single, excluded=1' },
    ],
  ])('says how the model was found: %s', (_, request, outcomes, expected) => {
    expect(reportOf(request, outcomes)).toMatchObject(expected);
  });
});

describe('the metadata of an error', () => {
  it('has the attempts, and no selected endpoint', () => {
    const metadata = reportOf({ model: 'a/one' }, [down, down]);

    expect(metadata).toMatchObject({ attempt: 2, summary: 'available=2, selected=none, order=weighted', attempts: [{ status: 503 }, { status: 503 }] });
    expect(metadata.endpoints.available.map(({ selected }) => selected)).toEqual([false, false]);
  });

  it('counts what was excluded, where nothing is left', () => {
    const metadata = reportOf({ model: 'a/one', provider: { only: ['elsewhere'] } }, []);

    expect(metadata).toMatchObject({ attempt: 0, endpoints: { total: 2, available: [] }, summary: 'available=0, selected=none, excluded=2' });
    expect(metadata).not.toHaveProperty('attempts');
  });

  it('is complete where no provider was chosen', () => {
    expect(new RoutingReport({ models: ['x/none'] }).metadata(null)).toEqual({
      ...{ requested: 'x/none', strategy: 'direct', region: null, summary: 'no provider was chosen', attempt: 0, is_byok: false },
      endpoints: { total: 0, available: [] },
    });
  });
});

it('lists no more than 64 endpoints, and counts all', () => {
  const slugs = Array.from({ length: 70 }, (_, at) => `p${at}`);
  const wide = routerConfig.parse({
    providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
    models: [{ id: 'a/one', endpoints: slugs.map((slug) => endpoint(slug, '1')) }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });

  expect(reportOf({}, [null], wide).endpoints).toMatchObject({ total: 70, available: { length: 64 } });
});
