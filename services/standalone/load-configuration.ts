import { type LoadedBundle, loadBundle } from '#shared/config/load-bundle.ts';
import { checkRouterConfig, loadRouterConfig } from '#shared/config/load-router-config.ts';
import { configInvalid } from '#shared/config/problems.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { builtInRouter } from './built-in-router.ts';
import type { StandaloneConfig } from './config.ts';
import { withModels } from './list-models.ts';
import { missingModels } from './missing-models.ts';

export interface Configuration {
  routerConfig: RouterConfig;
  /** What `routerConfig` was read from, where it is no file. */
  madeRouter: unknown;
  bundle: LoadedBundle;
}

type Paths = Pick<StandaloneConfig, 'manifestPath' | 'documentsPath' | 'routerConfigPath' | 'openAi' | 'isSampleAgent' | 'publicBaseUrl'>;

interface Environments {
  /** With the generated keys. */
  environment: Environment;
  /** What the operator has set. */
  given: Environment;
}

/**
 * The router's configuration and the agent's, which run side by side here and so can be checked against each other.
 * @throws `config.invalid` listing everything that is wrong with one of them, or the models that the agent asks for and the router has not
 */
export async function loadConfiguration(config: Paths, { environment, given }: Environments): Promise<Configuration> {
  const { manifestPath, documentsPath, routerConfigPath, openAi, isSampleAgent, publicBaseUrl } = config;
  const upstream = openAi === null ? null : await withModels(openAi, environment.OPENAI_API_KEY);
  const madeRouter = routerConfigPath === null ? builtInRouter({ openAi: upstream }) : null;
  const routerConfig = routerConfigPath === null ? checkRouterConfig(madeRouter, environment) : await loadRouterConfig(routerConfigPath, environment);
  const bundle = await loadBundle({ manifestPath, documentsPath, environment: isSampleAgent ? environment : given, publicBaseUrl });
  const missing = missingModels(bundle.body.manifest, routerConfig);
  if (missing.length > 0) throw configInvalid(manifestPath, missing);
  return { routerConfig, madeRouter, bundle };
}
