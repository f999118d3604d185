import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { systemClock } from '#shared/clock.ts';
import { signatureOf } from '#shared/config/file-watch.ts';
import { fixed, type Living } from '#shared/config/living.ts';
import type { LoadedBundle } from '#shared/config/load-bundle.ts';
import type { LoadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import { keepRouterConfig } from '#shared/config/open-router-config.ts';
import { configInvalid } from '#shared/config/problems.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { onHangUp } from '#shared/lifecycle/hang-up.ts';
import type { Releasers } from '#shared/lifecycle/releasers.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Configuration } from './load-configuration.ts';
import { missingModels } from './missing-models.ts';
import { unknownModelKey } from './unknown-model-key.ts';

interface Deps {
  environment: Environment;
  log: Log;
  metrics: Metrics;
  releasers: Releasers;
}

/**
 * Loads the configuration, and reads the router's file again when that changes. One without the models of the agent is refused, as at the start.
 * @param path null: there is no file, and nothing is read again
 * @throws as `load`
 */
export async function keepRouter(
  path: string | null,
  load: () => Promise<Configuration>,
  { environment, log, metrics, releasers }: Deps,
): Promise<Configuration & { living: Living<LoadedRouterConfig> }> {
  const signature = path === null ? '' : await signatureOf(path);
  const configuration = await load();
  const { router, bundle, platform } = configuration;
  if (path === null) {
    reloadOnHangUp(releasers, () => log.warn({}, 'SIGHUP: nothing is read again, since ROUTER_CONFIG names no file'));
    return { ...configuration, living: fixed(router) };
  }
  const file = { path, environment, use: { secrets: 'all', provider: providerBlock } } as const;
  const kept = keepRouterConfig(file, { loaded: router, signature }, { clock: systemClock, log, metrics });
  releasers.add('router configuration', kept.stop);
  reloadOnHangUp(releasers, kept.reload);
  // Those of another platform are not in this file.
  if (platform === null) kept.living.derive(({ config }) => refuseMissing(bundle, config));
  kept.living.onChange(({ config }) => {
    if (platform !== null) return;
    for (const warning of unknownModelKey(bundle, config, environment)) log.warn({}, warning);
  });
  return { ...configuration, living: kept.living };
}

/** Not in a terminal, which sends SIGHUP as it is closed. */
function reloadOnHangUp(releasers: Releasers, listener: () => unknown): void {
  if (process.stdin.isTTY !== true) releasers.add('reload on SIGHUP', onHangUp(listener));
}

/** @throws `config.invalid` */
function refuseMissing(bundle: LoadedBundle, config: LoadedRouterConfig['config']): void {
  const missing = missingModels(bundle.body.manifest, config);
  if (missing.length > 0) throw configInvalid("the router's configuration", missing);
}
