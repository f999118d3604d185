import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { folderSource } from '#shared/config/folder-source.ts';
import { type LoadedBundle, loadBundle } from '#shared/config/load-bundle.ts';
import { checkRouterConfig, loadRouterConfig } from '#shared/config/load-router-config.ts';
import { type LoadedRouterConfig, loadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import { configInvalid } from '#shared/config/problems.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { builtInRouter } from './built-in-router.ts';
import type { StandaloneConfig } from './config.ts';
import { withModels } from './list-models.ts';
import { missingModels } from './missing-models.ts';
import { priceWarnings, readModelPrices } from './model-prices.ts';
import { unknownModelKey } from './unknown-model-key.ts';

export interface Configuration {
  router: LoadedRouterConfig;
  /** Null when it is from a file. */
  builtInRouterConfig: unknown;
  bundle: LoadedBundle;
}

type Paths = Pick<
  StandaloneConfig,
  'manifestPath' | 'documentsPath' | 'routerConfigPath' | 'routerPricesPath' | 'openAi' | 'vendors' | 'isSampleAgent' | 'publicBaseUrl'
>;

interface Environments {
  /** With generated keys. */
  environment: Environment;
  /** Without them. */
  given: Environment;
}

/**
 * Loads the router's and the agent's configuration and checks them against each other.
 * @throws `config.invalid` listing every fault of one of them, or the agent's models that the router does not have
 */
export async function loadConfiguration(config: Paths, { environment, given }: Environments): Promise<Configuration> {
  const { manifestPath, documentsPath, routerConfigPath, routerPricesPath, openAi, vendors, isSampleAgent, publicBaseUrl } = config;
  const upstream = openAi === null ? null : await withModels(openAi, environment);
  const prices = routerPricesPath === null ? null : await readModelPrices(routerPricesPath);
  const builtInRouterConfig = routerConfigPath === null ? builtInRouter({ openAi: upstream, vendors, prices }) : null;
  const use = { secrets: 'all', provider: providerBlock } as const;
  const router =
    routerConfigPath === null
      ? loadedRouterConfig(checkRouterConfig(builtInRouterConfig, environment, use), builtInRouterConfig)
      : await loadRouterConfig(routerConfigPath, environment, use);
  const routerConfig = router.config;
  const bundle = await loadBundle({ manifestPath, documents: folderSource(documentsPath), environment: isSampleAgent ? environment : given, publicBaseUrl });
  const missing = missingModels(bundle.body.manifest, routerConfig);
  if (missing.length > 0) throw configInvalid(manifestPath, missing);
  const unpriced = routerConfigPath === null ? priceWarnings(routerConfig, prices) : [];
  const warnings = [...bundle.warnings, ...unusedDatabase(bundle, manifestPath), ...unknownModelKey(bundle, routerConfig, environment), ...unpriced];
  return { router, builtInRouterConfig, bundle: { ...bundle, warnings } };
}

function unusedDatabase({ body }: LoadedBundle, manifestPath: string): string[] {
  if (body.manifest.agent_config.database === null) return [];
  return [`${manifestPath}: agent_config.database is not used: this process keeps its data in DATA_DIR`];
}
