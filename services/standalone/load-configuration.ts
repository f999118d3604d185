import { readFile } from 'node:fs/promises';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { type LoadedBundle, loadBundle } from '#shared/config/load-bundle.ts';
import { checkRouterConfig, loadRouterConfig } from '#shared/config/load-router-config.ts';
import { type LoadedRouterConfig, loadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import { configInvalid } from '#shared/config/problems.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { type PlatformRouter, platformRouterOf } from '#shared/keys/platform-router.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { builtInRouter } from './built-in-router.ts';
import type { StandaloneConfig } from './config.ts';
import { envFileNotes } from './env-file-notes.ts';
import { withModels } from './list-models.ts';
import { missingModels } from './missing-models.ts';
import { priceWarnings, readModelPrices } from './model-prices.ts';
import { platformModels } from './platform-models.ts';
import { unknownModelKey } from './unknown-model-key.ts';

export interface Configuration {
  router: LoadedRouterConfig;
  /** Null when it is from a file. */
  builtInRouterConfig: unknown;
  bundle: LoadedBundle;
  /** The router of another deployment, for the agent's model calls; null: this one. */
  platform: PlatformRouter | null;
}

/** The manifest's variables are generated where it is the sample agent's. */
const UNSET_ADVICE = 'Set these variables before the start, for example in .env: they are generated for the sample agent alone.';

type Paths = Pick<
  StandaloneConfig,
  | 'manifestPath'
  | 'documentsPath'
  | 'isFolderGiven'
  | 'routerConfigPath'
  | 'routerPricesPath'
  | 'openAi'
  | 'vendors'
  | 'isSampleAgent'
  | 'publicBaseUrl'
  | 'envFileLines'
>;

interface Environments {
  /** With generated keys. */
  environment: Environment;
  /** Without them. */
  given: Environment;
  /** Opened where documents are there; null: they are not. */
  database: (() => Promise<Queryable>) | null;
}

/**
 * Loads the router's and the agent's configuration and checks them against each other.
 * @throws `config.invalid` listing every fault of one of them, or the agent's models that the router does not have
 */
export async function loadConfiguration(config: Paths, { environment, given, database }: Environments): Promise<Configuration> {
  const { manifestPath, routerConfigPath, routerPricesPath, openAi, vendors, isSampleAgent, publicBaseUrl } = config;
  const upstream = openAi === null ? null : await withModels(openAi, environment);
  const prices = routerPricesPath === null ? null : await readModelPrices(routerPricesPath);
  const builtInRouterConfig = routerConfigPath === null ? builtInRouter({ openAi: upstream, vendors, prices }) : null;
  const use = { secrets: 'all', provider: providerBlock } as const;
  const router =
    routerConfigPath === null
      ? loadedRouterConfig(checkRouterConfig(builtInRouterConfig, environment, use), builtInRouterConfig)
      : await loadRouterConfig(routerConfigPath, environment, use);
  const routerConfig = router.config;
  const ofAgent = isSampleAgent ? environment : given;
  const documents = agentDocuments({ ...config, environment: ofAgent, database });
  const bundle = await loadBundle({ manifestPath, documents, environment: ofAgent, unsetAdvice: UNSET_ADVICE });
  const { manifest } = bundle.body;
  const platform = platformRouterOf(manifest, publicBaseUrl, environment);
  const { missing, warnings: ofModels } =
    platform === null ? modelsHere(bundle, routerConfig, environment) : await platformModels(manifest, platform, environment);
  if (missing.length > 0) throw configInvalid(manifestPath, missing);
  const unpriced = routerConfigPath === null ? priceWarnings(routerConfig, prices) : [];
  const texts = await Promise.all([manifestPath, routerConfigPath].map(async (path) => (path === null ? '' : await readFile(path, 'utf8'))));
  const ofEnvFile = envFileNotes(config.envFileLines, [...texts, JSON.stringify(bundle.body)]);
  const warnings = [...bundle.warnings, ...unusedDatabase(bundle, manifestPath), ...ofModels, ...unpriced, ...ofEnvFile];
  return { router, builtInRouterConfig, bundle: { ...bundle, warnings }, platform };
}

function unusedDatabase({ body }: LoadedBundle, manifestPath: string): string[] {
  if (body.manifest.agent_config.database === null) return [];
  return [`${manifestPath}: agent_config.database is not used: this process keeps its data in DATA_DIR`];
}

function modelsHere(bundle: LoadedBundle, routerConfig: LoadedRouterConfig['config'], environment: Environment) {
  return { missing: missingModels(bundle.body.manifest, routerConfig), warnings: unknownModelKey(bundle, routerConfig, environment) };
}
