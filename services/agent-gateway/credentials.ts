import type { Credential } from '#shared/config/check-credentials.ts';

/**
 * Of the manifest, what an agent gateway uses: callers' key, the key of the model calls with which it judges webhooks, the trace backend's, and the secrets of
 * webhooks. The platform's keys are required only where documents are fetched from another deployment, or the agent is registered there.
 */
export const gatewayCredentials = ['runtime.api_key', 'llms.api_key', 'traces.backend.api_key', 'webhooks.*.secret_env'] as const satisfies Credential[];
