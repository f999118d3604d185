import { expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { openProviders } from './registry.ts';

const config = routerConfig.parse({
  providers: [
    { slug: 'scripted', kind: 'scripted' },
    { slug: 'openai', kind: 'openai-compatible', base_url: 'https://api.openai.com/v1', api_key: '${OPENAI_API_KEY}' },
    { slug: 'local', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' },
  ],
  models: [{ id: 'a/one', endpoints: [{ provider: 'scripted', upstream_model: 'one' }] }],
  keys: [{ id: 'k', key: '${KEY}' }],
});

it('names the variable of a credential that is missing or empty', () => {
  for (const environment of [{}, { OPENAI_API_KEY: '' }, { OPENAI_API_KEY: ' \n' }]) {
    expect(() => openProviders({ config, environment, clock: systemClock, scriptedWordsPerSecond: 0 })).toThrow(
      expect.objectContaining({ code: 'config.invalid', message: expect.stringMatching(/openai.*OPENAI_API_KEY/) }),
    );
  }
});

it('creates an adapter for every provider, and sends OpenAI the token limit under the name that all of its models support', async () => {
  const providers = openProviders({ config, environment: { OPENAI_API_KEY: 'sk-1' }, clock: systemClock, scriptedWordsPerSecond: 0 });
  expect([...providers.adapters.keys()]).toEqual(['scripted', 'openai', 'local']);
  const call = { model: 'm', request: { messages: [{ role: 'user' as const, content: 'hi' }], max_tokens: 5 } };
  expect(providers.adapters.get('openai')?.upstreamBody(call)).toMatchObject({ max_completion_tokens: 5 });
  expect(providers.adapters.get('local')?.upstreamBody(call)).toMatchObject({ max_tokens: 5 });
  await providers.close();
});
