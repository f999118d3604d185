import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type EndpointConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { requestFor } from './parameters.ts';

/** Present, absent or null, as clients send fields. */
const field = <Value>(value: fc.Arbitrary<Value>) => fc.option(fc.option(value, { nil: null }), { nil: undefined });
const request = fc.record(
  {
    messages: fc.constant<ChatRequest['messages']>([{ role: 'user', content: 'Hello' }]),
    model: field(fc.constant('acme/large')),
    user: field(fc.string()),
    temperature: field(fc.double({ min: 0, max: 2 })),
    stop: field(fc.string()),
    max_tokens: field(fc.integer({ min: 1, max: 100_000 })),
    max_completion_tokens: field(fc.integer({ min: 1, max: 100_000 })),
  },
  { requiredKeys: ['messages'] },
) as fc.Arbitrary<ChatRequest>;

/** An endpoint that supports every parameter, by an absent list or a complete one. */
function endpointOf(limits: Pick<EndpointConfig, 'max_completion_tokens' | 'context_length'>, supported?: string[]): EndpointConfig {
  const endpoint: EndpointConfig = {
    provider: 'scripted',
    upstream_model: 'large',
    ...limits,
    ...(supported !== undefined && { supported_parameters: supported }),
  };
  const { models } = routerConfig.parse({
    providers: [{ slug: 'scripted', kind: 'scripted' }],
    models: [{ id: 'acme/large', endpoints: [endpoint] }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  return models[0]?.endpoints[0] ?? endpoint;
}

const at = (endpoint: EndpointConfig, kind = 'scripted') => ({ endpoint, provider: { kind } });

it('sends to an endpoint that lists no parameters what it sends to one that lists them all', () => {
  const tokens = fc.integer({ min: 1, max: 200_000 });
  const limits = fc.record({ max_completion_tokens: tokens, context_length: tokens }, { requiredKeys: [] });
  fc.assert(
    fc.property(request, limits, fc.option(tokens, { nil: null }), (asked, its, ceiling) => {
      const all = ['temperature', 'stop', 'max_tokens', 'max_completion_tokens'];

      expect(requestFor(at(endpointOf(its)), asked, ceiling)).toEqual(requestFor(at(endpointOf(its, all)), asked, ceiling));
    }),
  );
});

it('leaves out empty fields', () => {
  const asked = { messages: [{ role: 'user', content: 'Hello' }], temperature: null, stop: undefined, seed: 7 } as ChatRequest;

  expect(Object.keys(requestFor(at(endpointOf({})), asked, null))).toEqual(['messages', 'seed']);
});
