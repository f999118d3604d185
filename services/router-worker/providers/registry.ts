import type { Clock } from '#shared/clock.ts';
import type { ProviderConfig, RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, resolveSecret, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Outbound, openOutbound } from '#shared/http/outbound.ts';
import { openAiCompatible } from './openai-compatible/adapter.ts';
import type { ProviderAdapter } from './provider.ts';
import { scripted } from './scripted/adapter.ts';

/** Some of its models take `max_completion_tokens` only, and all take it. */
const OPENAI_HOST = 'api.openai.com';

export interface Providers {
  /** By slug. */
  adapters: ReadonlyMap<string, ProviderAdapter>;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

export interface ProvidersDeps {
  config: RouterConfig;
  environment: Environment;
  clock: Clock;
  /** Of the scripted model's streams; 0 is unpaced. */
  scriptedWordsPerSecond: number;
}

interface Opened {
  adapter: ProviderAdapter;
  close(): Promise<void>;
}

/** One adapter per configured provider. Connections are opened by the first calls. @throws `config.invalid` naming a missing or wrong variable */
export function openProviders({ config, environment, clock, scriptedWordsPerSecond }: ProvidersDeps): Providers {
  // All credentials first: nothing is opened when one is missing.
  const apiKeys = new Map(config.providers.map((provider) => [provider.slug, apiKeyOf(provider, environment)]));
  const shared = { connectTimeoutMs: config.timeouts.connect_ms, outbound: openOutbound(environment), clock, scriptedWordsPerSecond };
  const opened = config.providers.map((provider) => open(provider, { apiKey: apiKeys.get(provider.slug) ?? null, ...shared }));
  return {
    adapters: new Map(opened.map(({ adapter }) => [adapter.slug, adapter])),
    close: async () => {
      await Promise.all(opened.map((provider) => provider.close()));
    },
  };
}

interface ProviderSettings {
  apiKey: string | null;
  connectTimeoutMs: number;
  outbound: Outbound;
  clock: Clock;
  scriptedWordsPerSecond: number;
}

function open(provider: ProviderConfig, { scriptedWordsPerSecond: wordsPerSecond, ...settings }: ProviderSettings): Opened {
  const { slug, name = slug } = provider;
  switch (provider.kind) {
    case 'openai-compatible': {
      const { base_url: baseUrl } = provider;
      const maxTokensField = new URL(baseUrl).hostname === OPENAI_HOST ? 'max_completion_tokens' : 'max_tokens';
      const adapter = openAiCompatible({ ...settings, slug, name, baseUrl, maxTokensField });
      return { adapter, close: () => adapter.close() };
    }
    case 'scripted':
      return { adapter: scripted({ slug, name, wordsPerSecond }), close: async () => {} };
  }
}

function apiKeyOf(provider: ProviderConfig, environment: Environment): string | null {
  if (provider.kind !== 'openai-compatible' || provider.api_key === undefined) return null;
  // Secrets from files end in white space, which no header may carry.
  const value = resolveSecret(provider.api_key, environment)?.trim() ?? '';
  if (value === '') throw new SwitchyardError('config.invalid', `the provider ${provider.slug} needs the environment variable ${variableOf(provider.api_key)}`);
  return value;
}
