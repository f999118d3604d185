import { foreignPlatformOf } from '../config/platform-address.ts';
import { configInvalid } from '../config/problems.ts';
import { type Environment, resolveKey, variableOf } from '../config/secret-ref.ts';
import type { Manifest } from '../contracts/manifest/manifest.ts';
import { hashOfSecret } from './caller-key.ts';

/** The router of another deployment, which executes the agent's model calls. */
export interface PlatformRouter {
  /** Without a slash at its end. */
  baseUrl: string;
  /** The credential there: `llms.api_key`. */
  apiKey: string;
  /** By which calls name it. */
  keyHash: string;
}

/** Null: the agent's model calls are executed here. @throws `config.invalid` naming the variable of the credential when it is not set */
export function platformRouterOf(
  { agent_config: { llms, platform } }: Manifest,
  publicBaseUrl: string | null,
  environment: Environment,
): PlatformRouter | null {
  const baseUrl = foreignPlatformOf(platform.base_url, publicBaseUrl);
  if (baseUrl === null) return null;
  const apiKey = resolveKey(llms.api_key, environment);
  if (apiKey === null) throw configInvalid('the manifest', [`agent_config.llms.api_key: the environment variable ${variableOf(llms.api_key)} is not set`]);
  return { baseUrl, apiKey, keyHash: hashOfSecret(apiKey) };
}
