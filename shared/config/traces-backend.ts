import type { TracesBackend } from '../telemetry/open-exporter.ts';
import type { BundleBody } from './bundle-body.ts';
import { type Environment, resolveKey } from './secret-ref.ts';

type Platform = BundleBody['manifest']['agent_config']['platform'];

/**
 * Reads the manifest's `traces` and resolves its key; an unset key is not sent. The default backend is the platform's, if its address and
 * both keys are set. Otherwise `backend` is null: the platform is this deployment, with the environment's collector.
 */
export function tracesOf({ manifest }: BundleBody, environment: Environment): { backend: TracesBackend | null; deploymentEnvironment: string | null } {
  const { traces } = manifest.agent_config;
  const deploymentEnvironment = traces?.deployment_environment ?? null;
  const { url = null, api_key: reference = null, api_key_scheme: scheme = 'bearer' } = traces?.backend ?? {};
  if (url === null) return { backend: platformBackend(manifest.agent_config.platform, environment), deploymentEnvironment };
  const key = reference === null ? null : resolveKey(reference, environment);
  return { backend: { url, authorization: key === null ? null : authorizationOf(key, scheme) }, deploymentEnvironment };
}

function platformBackend({ base_url: baseUrl, public_key: publicRef, secret_key: secretRef }: Platform, environment: Environment): TracesBackend | null {
  const [publicKey, secretKey] = [resolveKey(publicRef, environment), resolveKey(secretRef, environment)];
  if (baseUrl === null || publicKey === null || secretKey === null) return null;
  return { url: `${baseUrl.replace(/\/+$/, '')}/api/v1/otel`, authorization: authorizationOf(`${publicKey}:${secretKey}`, 'basic') };
}

/** `user:password` is base64-encoded for HTTP Basic; a key without colon counts as encoded. */
function authorizationOf(key: string, scheme: 'bearer' | 'basic'): string {
  if (scheme === 'bearer') return `Bearer ${key}`;
  return `Basic ${key.includes(':') ? Buffer.from(key, 'utf8').toString('base64') : key}`;
}
