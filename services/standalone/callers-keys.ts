import { readFile } from 'node:fs/promises';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, variableOf } from '#shared/config/secret-ref.ts';
import type { StandaloneConfig } from './config.ts';
import { GENERATED_KEYS, type KeyName } from './keys.ts';

/** Where a caller finds an accepted key: an environment variable or a field of the key file. Never the key itself. */
export type KeyLocation = { variable: string } | { field: (typeof GENERATED_KEYS)[KeyName] };

/** Enabled keys, in the configuration's order. */
export function routerKeyLocations({ keys }: Pick<RouterConfig, 'keys'>, given: Environment): KeyLocation[] {
  return keys.filter(({ disabled }) => !disabled).map(({ key }) => locationOfKey(key, given));
}

/** @param given the operator's environment, without the generated keys */
export function locationOfKey(reference: string, given: Environment): KeyLocation {
  const variable = variableOf(reference);
  return isGenerated(variable) && !given[variable] ? { field: GENERATED_KEYS[variable] } : { variable };
}

type Files = Pick<StandaloneConfig, 'routerConfigPath' | 'manifestPath' | 'isSampleAgent'>;

/**
 * The keys to generate: those that the configurations reference, since others would get 401. Not those of a given manifest.
 * @param files null `routerConfigPath`: the built-in configuration, which references `ROUTER_API_KEY`
 */
export async function requestedKeys({ routerConfigPath, manifestPath, isSampleAgent }: Files): Promise<KeyName[]> {
  const isNamed = async (path: string, name: KeyName) => (await readFile(path, 'utf8').catch(() => '')).includes(`\${${name}}`);
  const inRouter = async (name: KeyName) => (routerConfigPath === null ? name === 'ROUTER_API_KEY' : await isNamed(routerConfigPath, name));
  return [
    ...((await inRouter('ROUTER_API_KEY')) ? ['ROUTER_API_KEY' as const] : []),
    ...((await inRouter('AGENT_API_KEY')) || (isSampleAgent && (await isNamed(manifestPath, 'AGENT_API_KEY'))) ? ['AGENT_API_KEY' as const] : []),
  ];
}

function isGenerated(variable: string): variable is KeyName {
  return variable in GENERATED_KEYS;
}
