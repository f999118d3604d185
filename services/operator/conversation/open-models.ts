import { DirectCalls } from '#services/router-worker/direct-calls.ts';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { builtInRouter } from '#services/standalone/built-in-router.ts';
import { givenSettings } from '#services/standalone/given-settings.ts';
import { withModels } from '#services/standalone/list-models.ts';
import { missingModels } from '#services/standalone/missing-models.ts';
import { upstreamOf } from '#services/standalone/upstream.ts';
import { enabledVendors } from '#services/standalone/vendors.ts';
import { systemClock } from '#shared/clock.ts';
import { checkRouterConfig, loadRouterConfig } from '#shared/config/load-router-config.ts';
import { type LoadedRouterConfig, loadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import { configInvalid } from '#shared/config/problems.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { platformRouterOf } from '#shared/keys/platform-router.ts';
import type { Log } from '#shared/telemetry/log.ts';

const { NATS_URL: _, NATS_PASSWORD: __, DATABASE_URL: ___, HOUSE_SECRET: ____, DATA_DIR: _____, ...modelSettings } = settingsOf('operator');

/** Of callers, which the operator has none of: the configuration of `npm start` names them. */
const UNUSED_KEYS = { ROUTER_API_KEY: 'unused', ROUTER_MANAGEMENT_KEY: 'unused as well' };
const USE = { secrets: 'all', provider: providerBlock } as const;

export interface Models {
  calls: Pick<DirectCalls, 'execute' | 'close'>;
  /** For people: what answers. */
  answeredBy: string;
}

interface ModelsDeps {
  environment: Environment;
  log: Log;
}

/**
 * What answers an agent's model calls: the platform that its manifest names; the models of ROUTER_CONFIG, or of the vendors whose key is set; else the script.
 * @throws `config.invalid`, also where the configured router lacks a model of the manifest
 */
export async function openModels(manifest: Manifest, manifestPath: string, { environment: given, log }: ModelsDeps): Promise<Models> {
  const settings = readSettings(modelSettings, givenSettings(given));
  const environment = { ...UNUSED_KEYS, ...given };
  const platform = platformRouterOf(manifest, settings.PUBLIC_BASE_URL ?? null, given);
  const open = (config: LoadedRouterConfig) => new DirectCalls({ config, platform, environment, clock: systemClock, log });
  if (platform !== null) return { calls: open(scripted(manifest, environment)), answeredBy: `the router at ${new URL(platform.baseUrl).host}` };
  const { ROUTER_CONFIG: path } = settings;
  const openAi = path === undefined ? upstreamOf(settings) : null;
  const vendors = path === undefined ? enabledVendors(settings) : [];
  if (path === undefined && openAi === null && vendors.length === 0) {
    const answeredBy = 'the scripted model: no model is configured (ROUTER_CONFIG, OPENAI_API_KEY, …)';
    return { calls: open(scripted(manifest, environment)), answeredBy };
  }
  const config = path === undefined ? builtIn(await upstreamModels(openAi, environment), vendors, environment) : await loadRouterConfig(path, environment, USE);
  const missing = missingModels(manifest, config.config);
  if (missing.length > 0) throw configInvalid(manifestPath, missing);
  return { calls: open(config), answeredBy: `the models of ${path ?? 'the vendors whose key is set'}` };
}

async function upstreamModels(openAi: ReturnType<typeof upstreamOf>, environment: Environment) {
  return openAi === null ? null : await withModels(openAi, environment);
}

function builtIn(openAi: Awaited<ReturnType<typeof upstreamModels>>, vendors: ReturnType<typeof enabledVendors>, environment: Environment): LoadedRouterConfig {
  const value = builtInRouter({ openAi, vendors });
  return loadedRouterConfig(checkRouterConfig(value, environment, USE), value);
}

/** The script in place of each model of the manifest, but for that of vectors, which is not asked (unasked-model.ts). */
function scripted({ agent_config: { llms } }: Manifest, environment: Environment): LoadedRouterConfig {
  const endpoints = [{ provider: 'scripted', upstream_model: 'assistant' }];
  const chats = [llms.default, ...llms.fallback, llms.evaluation, llms.evaluation_fallback].filter((name) => name !== null);
  const value = {
    providers: [{ slug: 'scripted', name: 'Scripted', kind: 'scripted' }],
    models: [{ id: 'scripted/assistant', aliases: [...new Set(chats)].filter((name) => name !== 'scripted/assistant'), endpoints }],
    keys: [{ id: 'operator', name: 'operator', key: '${ROUTER_API_KEY}' }],
  };
  return loadedRouterConfig(checkRouterConfig(value, environment, USE), value);
}
