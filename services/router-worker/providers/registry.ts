import { z } from 'zod';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import { providerSecrets } from '#shared/config/provider-secrets.ts';
import type { ProviderConfig, RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, resolveKey, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { SharedOpened } from '../shared-opened.ts';
import { anthropicDialect } from './anthropic/dialect.ts';
import { bedrockDialect } from './bedrock/dialect.ts';
import type { AdapterSettings, ConfiguredProvider, Dialect } from './dialect.ts';
import { geminiDialect } from './gemini/dialect.ts';
import { openAiCompatibleDialect } from './openai-compatible/dialect.ts';
import type { OpenedAdapter, ProviderAdapter } from './provider.ts';
import { responsesDialect } from './responses/dialect.ts';
import { scriptedDialect } from './scripted/dialect.ts';
import { sentenceEncoderDialect } from './sentence-encoder/dialect.ts';

/** A new dialect is its folder and a row here. */
const dialects: readonly [Dialect, ...Dialect[]] = [
  openAiCompatibleDialect,
  anthropicDialect,
  geminiDialect,
  bedrockDialect,
  responsesDialect,
  scriptedDialect,
  sentenceEncoderDialect,
];

const [firstDialect, ...otherDialects] = dialects;
/** Of a provider's whole block in the configuration, whatever its kind. */
export const providerBlock = z.discriminatedUnion('kind', [firstDialect.config, ...otherDialects.map(({ config }) => config)]);

const dialectOf = new Map(dialects.map((dialect) => [dialect.config.shape.kind.value, dialect]));

/** By slug. @throws `config.invalid` for a kind without a dialect, ZodError for a block that `providerBlock` refuses */
export type ConfiguredProviders = ReadonlyMap<string, ConfiguredProvider>;

export function configuredProviders({ providers }: Pick<RouterConfig, 'providers'>): ConfiguredProviders {
  return new Map(providers.map((block) => [block.slug, configured(block)]));
}

function configured(block: ProviderConfig): ConfiguredProvider {
  const dialect = dialectOf.get(block.kind);
  if (dialect === undefined) throw new SwitchyardError('config.invalid', `the provider ${block.slug} has no known kind`);
  return dialect.configure(block);
}

export interface Providers {
  configured: ConfiguredProviders;
  /** By slug. */
  adapters: ReadonlyMap<string, ProviderAdapter>;
  /** Closes all connections, also those in use, but for those of adapters that others share. Once. */
  close(): Promise<void>;
}

export interface ProvidersDeps
  extends Pick<AdapterSettings, 'clock' | 'scriptedWordsPerSecond'>,
    Partial<Pick<AdapterSettings, 'cache' | 'log' | 'outboundRules'>> {
  config: RouterConfig;
  environment: Environment;
  /** Those of the configurations before, of the same process. Absent: none. */
  shared?: SharedOpened<OpenedAdapter>;
}

const NO_EXCEPTIONS = { allowHosts: new Set<string>() };

/** One adapter per configured provider. Connections are opened by the first calls. @throws `config.invalid` naming a missing or wrong variable */
export function openProviders({
  config,
  environment,
  cache = null,
  outboundRules = NO_EXCEPTIONS,
  log = silentLog,
  shared,
  ...settings
}: ProvidersDeps): Providers {
  const configured = configuredProviders(config);
  // All credentials first: nothing is opened when one is missing.
  const secrets = new Map(config.providers.flatMap((block) => secretsOf(block, environment)));
  const connectTimeoutMs = config.timeouts.connect_ms;
  const outbound = openOutbound(environment);
  const secret = (reference: string) => secrets.get(reference) ?? '';
  const open = (provider: ConfiguredProvider) => provider.open({ ...settings, cache, outboundRules, log, secret, connectTimeoutMs, outbound });
  const all = shared ?? new SharedOpened<OpenedAdapter>();
  const acquired: string[] = [];
  const close = async () => {
    await Promise.all(acquired.splice(0).map((key) => all.release(key)));
  };
  try {
    const adapters = config.providers.map((block): [string, ProviderAdapter] => {
      const key = canonicalJson([block, connectTimeoutMs]);
      const adapter = all.acquire(key, () => open(configured.get(block.slug) as ConfiguredProvider));
      acquired.push(key);
      return [block.slug, adapter];
    });
    return { configured, adapters: new Map(adapters), close };
  } catch (error) {
    void close();
    throw error;
  }
}

function secretsOf(block: ProviderConfig, environment: Environment): [reference: string, value: string][] {
  return providerSecrets(block).map(({ reference }) => {
    const value = resolveKey(reference, environment);
    if (value === null) throw new SwitchyardError('config.invalid', `the provider ${block.slug} needs the environment variable ${variableOf(reference)}`);
    return [reference, value];
  });
}
