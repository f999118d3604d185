import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { banner } from './banner.ts';
import { locationOfKey, routerKeyLocations } from './callers-keys.ts';
import { parseConfig } from './config.ts';
import { GENERATED_KEYS, KEYS_FILE, newKeys, withKeys } from './keys.ts';
import { loadConfiguration } from './load-configuration.ts';
import { askCommand, readmePath } from './package-folder.ts';
import { probeToolServers } from './probe-tool-servers.ts';
import { writeRunningFile } from './running-file.ts';

interface ClusterAddresses {
  routerUrls: readonly string[];
  agentUrls: readonly string[];
  /** Deleted with the cluster. */
  folder: string;
}

/**
 * What `npm run cluster` (scripts/cluster.mjs) starts its processes with, validated as by `npm start`. `describe` writes keys and addresses for `npm run ask`
 * and returns the banner.
 * @throws `config.invalid`
 */
export async function clusterComponents(settings: Environment, { isTerminal }: { isTerminal: boolean }) {
  const config = parseConfig(settings);
  const { atStart: given } = await readSecrets({ ...config, environment: settings });
  const keys = newKeys(given);
  const environment = withKeys(given, keys);
  const { router, builtInRouterConfig, bundle } = await loadConfiguration(config, { environment, given, database: null });
  const routerConfig = router.config;
  const toolServers = probeToolServers(bundle, { environment, clock: systemClock });
  const routerKeys = routerKeyLocations(routerConfig, given);
  const managementKeys = routerKeyLocations(routerConfig, given, { management: true });
  const agentKey = locationOfKey(bundle.body.manifest.agent_config.runtime.api_key, given);
  const values = {
    [GENERATED_KEYS.ROUTER_API_KEY]: keys.routerKey,
    [GENERATED_KEYS.ROUTER_MANAGEMENT_KEY]: keys.managementKey,
    [GENERATED_KEYS.AGENT_API_KEY]: keys.agentKey,
  };
  const generated = new Map(
    [...routerKeys, ...managementKeys, agentKey].flatMap((location) => ('field' in location ? [[location.field, values[location.field] ?? '']] : [])),
  );

  async function describe({ routerUrls, agentUrls, folder }: ClusterAddresses): Promise<{ text: string; keysFile: string }> {
    const keysFile = join(folder, KEYS_FILE);
    await writeFile(keysFile, `${JSON.stringify(Object.fromEntries(generated), null, 2)}\n`, { mode: 0o600 });
    const servers = { router: { urls: routerUrls, key: routerKeys[0] ?? null }, agent: { urls: agentUrls, key: agentKey } };
    await writeRunningFile(folder, { kind: 'cluster', pid: process.pid, ...servers });
    const text = banner({
      what: 'The cluster',
      routerUrls,
      agentUrls,
      routerConfig,
      routerConfigPath: config.routerConfigPath,
      openAi: config.openAi,
      vendors: config.vendors,
      agentName: bundle.body.manifest.name,
      manifestPath: config.manifestPath,
      dataFolder: folder,
      isTemporary: true,
      isNewFolder: false,
      routerKeys,
      managementKeys,
      agentKey,
      shownKeys: isTerminal ? generated : new Map(),
      question: config.isSampleAgent ? 'How long is the warranty?' : 'Hello',
      askCommand: askCommand(),
      readmePath,
      envFile: config.envFile,
      warnings: [...bundle.warnings, ...(await toolServers)],
      withoutEffect: bundle.withoutEffect,
    });
    return { text, keysFile };
  }

  return {
    describe,
    environment: { ...environment, HOUSE_SECRET: keys.houseSecret, MANIFEST: config.manifestPath },
    ...(builtInRouterConfig === null ? {} : { routerConfig: builtInRouterConfig }),
  };
}
