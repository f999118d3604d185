import { expect, it } from 'vitest';
import { type EndpointConfig, routerConfig } from '#shared/config/router-config.ts';
import { withSuffixEffects } from '#shared/config/suffix-effects.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { configuredProviders } from '../providers/registry.ts';
import { catalogueOf } from './candidates.ts';
import { chosen } from './test-support/chosen.ts';

const prices = (prompt: string) => ({ prices: { prompt, completion: '1' } });
const endpoints: Record<string, Partial<EndpointConfig>> = {
  dear: { ...prices('9'), speed: { tokens_per_second: 50 }, quantization: 'fp8' },
  cheap: { ...prices('1'), speed: { tokens_per_second: 10 }, quantization: 'fp4' },
  quick: { ...prices('5'), speed: { tokens_per_second: 90 } },
  exact: { ...prices('7'), speed: { tokens_per_second: 20 }, quantization: 'bf16', supported_parameters: ['max_tokens'] },
  gift: { prices: { prompt: '0', completion: '0' }, quantization: 'int4' },
};
const config = routerConfig.parse({
  providers: Object.keys(endpoints).map((slug) => ({ slug, kind: 'scripted' })),
  models: [
    { id: 'a/one', endpoints: Object.entries(endpoints).map(([provider, fields]) => ({ provider, upstream_model: 'm', ...fields })) },
    { id: 'b/two', endpoints: [{ provider: 'dear', upstream_model: 'm', ...prices('1') }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const catalogue = catalogueOf(config, configuredProviders(config));

function order(model: string, fields: Partial<ChatRequest> = {}): string[] {
  const request = withSuffixEffects({ messages: [{ role: 'user', content: 'hi' }], model, ...fields }, 'chat', catalogue.names);
  return chosen(config, request, {}, { catalogue }).candidates.map(({ model: { id }, provider: { slug } }) => (id === 'a/one' ? slug : `${id}@${slug}`));
}

it('orders candidates as a suffix asks: by throughput, price, or quality', () => {
  expect(order('a/one:nitro').slice(0, 2)).toEqual(['quick', 'dear']);
  expect(order('a/one:floor').slice(0, 2)).toEqual(['gift', 'cheap']);
  expect(order('a/one:exacto')).toEqual(['exact', 'quick', 'dear', 'cheap', 'gift']);
});

it('puts quality behind what an endpoint would drop of the request', () => {
  expect(order('a/one:exacto', { temperature: 1 })).toEqual(['quick', 'dear', 'cheap', 'gift', 'exact']);
  expect(order('a/one', { temperature: 1, provider: { sort: { by: 'exacto', partition: 'none' } } })).toEqual(['quick', 'dear', 'cheap', 'gift', 'exact']);
});

it('asks endpoints that cost nothing alone, then the next model', () => {
  expect(order('a/one:free')).toEqual(['gift']);
  expect(order('a/one:free', { models: ['b/two'] })).toEqual(['gift', 'b/two@dear']);
});
