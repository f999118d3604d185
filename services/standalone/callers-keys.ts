import { readFile } from 'node:fs/promises';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, variableOf } from '#shared/config/secret-ref.ts';
import type { StandaloneConfig } from './config.ts';
import { GENERATED_KEYS, type KeyName } from './keys.ts';

/** Where a caller finds a key that is accepted: in a variable that the operator has set, or in a field of the key file. Never the key itself. */
export type KeyLocation = { variable: string } | { field: (typeof GENERATED_KEYS)[KeyName] };

/** The places of every key that the router accepts, in the configuration's order; empty when all are disabled. */
export function routerKeyLocations({ keys }: Pick<RouterConfig, 'keys'>, given: Environment): KeyLocation[] {
  return keys.filter(({ disabled }) => !disabled).map(({ key }) => locationOfKey(key, given));
}

/** @param reference as configurations name a credential @param given what the operator has set, without the generated keys */
export function locationOfKey(reference: string, given: Environment): KeyLocation {
  const variable = variableOf(reference);
  return isGenerated(variable) && !given[variable] ? { field: GENERATED_KEYS[variable] } : { variable };
}

type Files = Pick<StandaloneConfig, 'routerConfigPath' | 'manifestPath' | 'isSampleAgent'>;

/**
 * The keys that a request can be made with: a configuration that names none of ours would refuse it with 401.
 * @param files that name the keys of callers; null: a configuration that is made here, which names `ROUTER_API_KEY`. Keys of a manifest that was given
 * are not made up
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
