import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { openProxyDouble } from '#shared/http/test-support/open-proxy-double.ts';
import { SharedOpened } from '../shared-opened.ts';
import type { OpenedAdapter } from './provider.ts';
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

it('calls a provider through the proxy of the environment', async () => {
  const upstream = createServer((_, response) => void response.writeHead(404).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void upstream.close());
  await once(upstream, 'listening');
  const proxy = await openProxyDouble((upstream.address() as AddressInfo).port);
  onTestFinished(() => proxy.close());
  const far = { slug: 'far', kind: 'openai-compatible' as const, base_url: 'http://models.invalid/v1' };
  const providers = openProviders({
    config: { ...config, providers: [far] },
    environment: { HTTP_PROXY: proxy.url },
    clock: systemClock,
    scriptedWordsPerSecond: 0,
  });
  onTestFinished(() => providers.close());
  const call = { model: 'm', request: { messages: [] }, timeouts: { connectMs: 20_000, firstTokenMs: 20_000, idleMs: 20_000 } };
  const refused = providers.adapters.get('far')?.stream(call, new AbortController().signal, () => true);

  await expect(refused).rejects.toMatchObject({ details: { status: 404 } });
  expect(proxy.tunnels).toEqual(['models.invalid:80']);
});

it('shares the adapters of blocks that are the same, and closes one with the last configuration that has it', async () => {
  const shared = new SharedOpened<OpenedAdapter>();
  const open = (given: Partial<typeof config>) =>
    openProviders({ config: { ...config, ...given }, environment: { OPENAI_API_KEY: 'sk-1' }, clock: systemClock, scriptedWordsPerSecond: 0, shared });
  const first = open({});
  const [scripted, openai] = config.providers;
  if (scripted === undefined || openai === undefined) throw new TypeError('the configuration has no providers');
  const second = open({ providers: [scripted, { ...openai, base_url: 'https://eu.api.openai.com/v1' }] });

  expect(second.adapters.get('scripted')).toBe(first.adapters.get('scripted'));
  expect(second.adapters.get('openai')).not.toBe(first.adapters.get('openai'));
  expect(shared.count).toBe(4);

  const third = open({ timeouts: { ...config.timeouts, connect_ms: config.timeouts.connect_ms + 1 } });
  expect(third.adapters.get('local')).not.toBe(first.adapters.get('local'));
  await third.close();

  await first.close();
  await first.close();
  expect(shared.count).toBe(2);
  await second.close();
  expect(shared.count).toBe(0);
});
