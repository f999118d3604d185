import { type AccountRulesTable, accountRulesOf } from '#shared/config/account-rules.ts';
import type { Living } from '#shared/config/living.ts';
import type { LoadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import { fileKeys } from '#shared/keys/file-keys.ts';
import { ignoredFields } from './ignored-fields.ts';
import { indexModels, type ModelIndex } from './model-index.ts';
import { type ModelLists, modelListsOf } from './models/model-lists.ts';

/** All that requests use of one configuration. A request keeps the one that it was admitted under. */
export interface GatewaySetup {
  config: RouterConfig;
  /** Of the configuration's content. */
  hash: string;
  models: ModelIndex;
  modelLists: ModelLists;
  /** Header value; null when nothing is ignored. */
  ignoredIn: ReturnType<typeof ignoredFields>;
  /** Of the account and its keys. */
  rules: AccountRulesTable;
  /** Pages of these may send requests. */
  origins: ReadonlySet<string>;
  /** By the provider's slug. */
  providerNames: ReadonlyMap<string, string>;
  /** By hash. */
  fileKeys: ReadonlyMap<string, CallerKey>;
  /** Of this configuration and those before it in this process: a stream that is resumed may have begun under one of them. */
  longestTotalMs: number;
}

/** @throws `config.invalid` for an unknown default model, and for a key's secret that is missing or wrong */
export function gatewaySetup(routerConfig: Living<LoadedRouterConfig>, environment: Environment): Living<GatewaySetup> {
  let longestTotalMs = 0;
  return routerConfig.derive(({ config, hash }) => {
    const setup = {
      config,
      hash,
      models: indexModels(config),
      modelLists: modelListsOf(config),
      ignoredIn: ignoredFields(config),
      rules: accountRulesOf(config),
      origins: new Set(config.cors.origins),
      providerNames: new Map(config.providers.map(({ slug, name = slug }) => [slug, name])),
      fileKeys: fileKeys(config, environment),
    };
    longestTotalMs = Math.max(longestTotalMs, config.timeouts.total_ms);
    return { ...setup, longestTotalMs };
  });
}
