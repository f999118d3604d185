import { readFile } from 'node:fs/promises';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, variableOf } from '#shared/config/secret-ref.ts';
import { SECRET_REF } from '#shared/contracts/manifest/secret-ref.ts';
import type { StandaloneConfig } from './config.ts';
import { GENERATED_KEYS, type KeyName } from './keys.ts';

/** Where a caller finds an accepted key: an environment variable or a field of the key file. Never the key itself. */
export type KeyLocation = { variable: string } | { field: (typeof GENERATED_KEYS)[KeyName] };

type ConfiguredKey = Pick<RouterConfig['keys'][number], 'key' | 'disabled' | 'management'>;

/** Enabled keys for models, or those for management, in the configuration's order. Without keys that it has by their hash: they are found nowhere. */
export function routerKeyLocations({ keys }: { keys: readonly ConfiguredKey[] }, given: Environment, { management = false } = {}): KeyLocation[] {
  const isLocated = (key: ConfiguredKey) => !key.disabled && key.management === management && SECRET_REF.test(key.key);
  return keys.filter(isLocated).map(({ key }) => locationOfKey(key, given));
}

/** @param given the operator's environment, without the generated keys */
export function locationOfKey(reference: string, given: Environment): KeyLocation {
  const variable = variableOf(reference);
  return isGenerated(variable) && !given[variable] ? { field: GENERATED_KEYS[variable] } : { variable };
}

type Files = Pick<StandaloneConfig, 'routerConfigPath' | 'manifestPath' | 'isSampleAgent'>;

/**
 * The keys to generate: those that the configurations reference, since others would get 401. Not those of a given manifest.
 * @param files null `routerConfigPath`: the built-in configuration, which references both keys of the router
 */
export async function requestedKeys({ routerConfigPath, manifestPath, isSampleAgent }: Files): Promise<KeyName[]> {
  const isNamed = async (path: string, name: KeyName) => (await readFile(path, 'utf8').catch(() => '')).includes(`\${${name}}`);
  const inRouter = async (name: KeyName) => (routerConfigPath === null ? name !== 'AGENT_API_KEY' : await isNamed(routerConfigPath, name));
  return [
    ...((await inRouter('ROUTER_API_KEY')) ? ['ROUTER_API_KEY' as const] : []),
    ...((await inRouter('ROUTER_MANAGEMENT_KEY')) ? ['ROUTER_MANAGEMENT_KEY' as const] : []),
    ...((await inRouter('AGENT_API_KEY')) || (isSampleAgent && (await isNamed(manifestPath, 'AGENT_API_KEY'))) ? ['AGENT_API_KEY' as const] : []),
  ];
}

function isGenerated(variable: string): variable is KeyName {
  return variable in GENERATED_KEYS;
}
