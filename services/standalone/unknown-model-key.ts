import type { Bundle } from '#shared/config/load-bundle.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import { hashInReference } from '#shared/keys/key-reference.ts';
import { modelKeyOf } from '#shared/keys/model-key.ts';

/** A warning when the agent's model calls would be refused, unless their key is one that was made over HTTP. */
export function unknownModelKey(bundle: Bundle, routerConfig: Pick<RouterConfig, 'keys'>, environment: Environment): string[] {
  const key = modelKeys(routerConfig, environment).get(hashInReference(modelKeyOf(bundle, environment)) ?? '');
  if (key !== undefined && !key.disabled) return [];
  const why = key === undefined ? 'is none of the keys for models in the configuration of the router' : `is the key '${key.id}', which is disabled`;
  return [`agent_config.llms.api_key: ${why}: model calls of the agent fail${key === undefined ? ', unless the key was made over HTTP' : ''}`];
}
