import type { Bundle } from '../config/load-bundle.ts';
import { type Environment, resolveKey, variableOf } from '../config/secret-ref.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { hashOfSecret } from './caller-key.ts';
import { keyReferenceOf } from './key-reference.ts';

/** The key of the agent's model calls as these name it: by its hash. @throws `config.invalid` naming the variable when it is not set */
export function modelKeyOf({ body }: Bundle, environment: Environment): string {
  const reference = body.manifest.agent_config.llms.api_key;
  const secret = resolveKey(reference, environment);
  if (secret === null) throw new SwitchyardError('config.invalid', `agent_config.llms.api_key: the environment variable ${variableOf(reference)} is not set`);
  return keyReferenceOf(hashOfSecret(secret));
}
