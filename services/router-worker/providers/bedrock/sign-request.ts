import { AwsV4Signer } from 'aws4fetch';
import type { Clock } from '#shared/clock.ts';
import type { AwsCredentials } from './shared-credentials.ts';

/** Of the signature, also for the service `bedrock-runtime`. */
const SERVICE = 'bedrock';
/** Derived keys: one per day and secret. */
const MAX_KEYS = 8;

export interface SignerOptions {
  baseUrl: string;
  region: string;
  clock: Clock;
}

/** Signs POSTs by Signature Version 4: host, date, session token and body, but no other header. */
export function requestSigner({ baseUrl, region, clock }: SignerOptions) {
  const { origin, pathname, search } = new URL(baseUrl);
  const base = `${origin}${pathname.replace(/\/+$/, '')}`;
  const keys = new Map<string, ArrayBuffer>();
  return async ({ accessKeyId, secretAccessKey, sessionToken }: AwsCredentials, path: string, body: string): Promise<Record<string, string>> => {
    if (keys.size >= MAX_KEYS) keys.clear();
    const signer = new AwsV4Signer({
      method: 'POST',
      url: `${base}${path}${search}`,
      body,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === null ? {} : { sessionToken }),
      service: SERVICE,
      region,
      cache: keys,
      datetime: new Date(clock.nowMs()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    });
    const { headers } = await signer.sign();
    return Object.fromEntries(headers);
  };
}
