import type { LoadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { FailureEvent } from '#shared/contracts/router/response-object.ts';
import type { worstCaseOf } from '#shared/credit/worst-case.ts';
import { type Catalogue, catalogueOf } from './call/candidates.ts';
import { type Upstreams, upstreamsOf } from './call-span.ts';
import { openEngines, type PluginEngines, type SharedEngines } from './pipeline/engines.ts';
import type { ProviderAdapter, ProviderTimeouts } from './providers/provider.ts';
import { openProviders, type ProvidersDeps } from './providers/registry.ts';

/** All that calls use of one configuration. A call keeps the one that it began with. */
export interface RouterSetup {
  /** Of the configuration's content. */
  hash: string;
  catalogue: Catalogue;
  /** By the provider's slug. */
  adapters: ReadonlyMap<string, ProviderAdapter>;
  timeouts: ProviderTimeouts;
  upstreams: Upstreams;
  /** Of plugins. */
  engines: PluginEngines;
  /** What they cost at most is part of what a call reserves. */
  enginePrices: Pick<Parameters<typeof worstCaseOf>[0], 'searchEngine' | 'ocr'>;
  /** Ceiling on the completion tokens of requests that have none, where credit is reserved for them. */
  defaultCompletionTokens: number;
  /** How streams end that fail behind content, where their API has several events for it. */
  failures: FailureEvent;
}

/** `close` once no call uses the setup. */
export interface OpenedSetup extends RouterSetup {
  close(): Promise<void>;
}

/** @throws `config.invalid`; nothing is open then */
export function openSetup({ config, hash }: LoadedRouterConfig, deps: Omit<ProvidersDeps, 'config'> & { sharedEngines?: SharedEngines }): OpenedSetup {
  const { connect_ms: connectMs, first_token_ms: firstTokenMs, idle_ms: idleMs } = config.timeouts;
  const { configured, adapters, close } = openProviders({ ...deps, config });
  const { environment, sharedEngines } = deps;
  const engines = openedOr(() => openEngines({ settings: config.plugins, environment, connectTimeoutMs: connectMs, shared: sharedEngines }), close);
  return {
    hash,
    catalogue: catalogueOf(config, configured),
    adapters,
    timeouts: { connectMs, firstTokenMs, idleMs },
    upstreams: upstreamsOf(configured),
    engines,
    enginePrices: { searchEngine: config.plugins.web, ocr: config.plugins.file_parser?.ocr },
    defaultCompletionTokens: config.default_completion_tokens,
    failures: config.errors,
    close: async () => {
      await Promise.all([close(), engines.close()]);
    },
  };
}

function openedOr<Opened>(open: () => Opened, close: () => Promise<void>): Opened {
  try {
    return open();
  } catch (error) {
    void close();
    throw error;
  }
}
