import type { Clock } from '#shared/clock.ts';
import { TokenFile } from './token-file.ts';

/** AI Studio by key, or Vertex AI by the token in a file. */
export type GeminiAccess = { type: 'key'; apiKey: string } | { type: 'vertex'; project: string; location: string; tokenFile: string };

export interface Credential {
  pathOf(model: string): string;
  /** @throws `router.provider_misconfigured` */
  headers(): Record<string, string>;
  /** What errors must not quote. */
  secrets(): readonly string[];
}

/** Of the requests of one provider. */
export function credentialOf(access: GeminiAccess, clock: Clock): Credential {
  if (access.type === 'key') {
    const { apiKey } = access;
    return {
      pathOf: (model) => `/v1beta/${model.includes('/') ? model : `models/${model}`}`,
      headers: () => ({ 'x-goog-api-key': apiKey }),
      secrets: () => [apiKey],
    };
  }
  const { project, location, tokenFile } = access;
  const token = new TokenFile(tokenFile, clock);
  return {
    pathOf: (model) => `/v1/projects/${project}/locations/${location}/publishers/google/models/${model}`,
    headers: () => ({ authorization: `Bearer ${token.current()}` }),
    secrets: () => token.recent,
  };
}
