import type { TracesBackend } from '../telemetry/open-tracing.ts';
import type { BundleBody } from './bundle-body.ts';
import { type Environment, resolveSecret } from './secret-ref.ts';

/** What the manifest says about traces, its key resolved: `backend` is null when it names none. A key that is not set is not sent. */
export function tracesOf({ manifest }: BundleBody, environment: Environment): { backend: TracesBackend | null; deploymentEnvironment: string | null } {
  const { traces } = manifest.agent_config;
  const deploymentEnvironment = traces?.deployment_environment ?? null;
  const { url = null, api_key: reference = null, api_key_scheme: scheme = 'bearer' } = traces?.backend ?? {};
  if (url === null) return { backend: null, deploymentEnvironment };
  const key = reference === null ? null : resolveSecret(reference, environment);
  return { backend: { url, authorization: key === null ? null : authorizationOf(key, scheme) }, deploymentEnvironment };
}

/** A pair of user and password is encoded, as HTTP wants it; anything else is taken for encoded already. */
function authorizationOf(key: string, scheme: 'bearer' | 'basic'): string {
  if (scheme === 'bearer') return `Bearer ${key}`;
  return `Basic ${key.includes(':') ? Buffer.from(key, 'utf8').toString('base64') : key}`;
}
