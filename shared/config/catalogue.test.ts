import { describe, expect, it } from 'vitest';
import { catalogue, withCatalogue } from './catalogue.ts';
import { checkRouterConfig } from './load-router-config.ts';
import type { RouterConfig } from './router-config.ts';

const environment = { KEY: 'k' };
const given = {
  providers: [
    { slug: 'openai', kind: 'openai-compatible' },
    { slug: 'other', kind: 'openai-compatible' },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
};
const configOf = (...models: object[]): RouterConfig => checkRouterConfig({ ...given, models }, environment, { secrets: 'keys' });
const known = catalogue().models['openai/gpt-5-mini'];

describe('a model of the router file that names an entry of the catalogue', () => {
  it('has what it leaves out, its endpoint too', () => {
    const [model] = configOf({ id: 'openai/gpt-5-mini', catalogue: 'openai/gpt-5-mini' }).models;

    expect(model).toMatchObject({ name: 'GPT-5 mini', endpoints: [{ provider: 'openai', upstream_model: 'gpt-5-mini', prices: known?.prices }] });
    expect(model?.endpoints[0]).toMatchObject({ context_length: 400_000, modalities: ['image', 'file'], supported_parameters: known?.supported_parameters });
  });

  it('wins field by field, prices too, and leaves out what it has as null', () => {
    const endpoint = { provider: 'openai', upstream_model: 'dated', prices: { prompt: '9', web_search: null }, context_length: 5, modalities: null };
    const [model] = configOf({ id: 'a/own', name: 'Own', catalogue: 'openai/gpt-5-mini', endpoints: [endpoint] }).models;

    expect(model).toMatchObject({ id: 'a/own', name: 'Own' });
    expect(model?.endpoints[0]).toEqual({
      ...{ provider: 'openai', upstream_model: 'dated', context_length: 5 },
      prices: { prompt: '9', completion: '2', cached_prompt: '0.025' },
      max_completion_tokens: known?.max_completion_tokens,
      supported_parameters: known?.supported_parameters,
    });
  });

  it('gives nothing to endpoints of other providers, which may name entries themselves', () => {
    const endpoints = [
      { provider: 'openai' },
      { provider: 'other', upstream_model: 'x' },
      { provider: 'other', catalogue: 'groq/openai/gpt-oss-120b', prices: { prompt: '1' } },
    ];
    const [model] = configOf({ id: 'a/own', catalogue: 'openai/gpt-5-mini', endpoints }).models;

    expect(model?.endpoints.map(({ provider, upstream_model, prices }) => [provider, upstream_model, prices?.prompt, prices?.completion])).toEqual([
      ['openai', 'gpt-5-mini', '0.25', '2'],
      ['other', 'x', undefined, undefined],
      ['other', 'openai/gpt-oss-120b', '1', '0.6'],
    ]);
  });

  it('has the dimensions of its vectors', () => {
    expect(configOf({ id: 'a/v', catalogue: 'openai/text-embedding-3-small' }, { id: 'a/c', catalogue: 'openai/gpt-5' }).models[0]).toMatchObject({
      embeddings: { dimensions: 1_536 },
      endpoints: [{ prices: { prompt: '0.02', completion: '0' } }],
    });
  });

  it.each([
    ['an entry that there is not', { catalogue: 'openai/gpt-0' }, 'models[0].catalogue: there is no model'],
    ['a name of every object', { catalogue: 'constructor' }, 'models[0].catalogue: there is no model'],
    ['no text', { catalogue: 5 }, 'models[0].catalogue: must be a string'],
    ['one at an endpoint', { endpoints: [{ provider: 'openai', catalogue: 'x/y' }] }, 'models[0].endpoints[0].catalogue: there is no model "x/y"'],
    ['a provider that the file lacks', { catalogue: 'mistral/mistral-embed' }, 'models[0].endpoints[0].provider: there is no provider "mistral"'],
    ['endpoints that are no list', { catalogue: 'openai/gpt-5', endpoints: 'x' }, 'models[0].endpoints'],
  ])('is refused with its place: %s', (_, fields, message) => {
    expect(() => configOf({ id: 'a/b', ...fields })).toThrow(message);
  });
});

it('leaves a file alone in which nothing names an entry', () => {
  const file = { ...given, models: [{ id: 'openai/gpt-5-mini', endpoints: [{ provider: 'openai', upstream_model: 'gpt-5-mini' }] }] };
  expect(withCatalogue(file).value).toBe(file);
  for (const odd of [null, 5, [], { models: 5 }, { models: [null, 5, { endpoints: [null] }] }])
    expect(withCatalogue(odd)).toEqual({ value: odd, problems: [] });
});
