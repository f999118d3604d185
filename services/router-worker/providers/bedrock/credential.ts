import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { RereadFile } from '../reread-file.ts';
import { type AwsCredentials, sharedCredentials } from './shared-credentials.ts';
import { requestSigner } from './sign-request.ts';

/** An API key of Bedrock, or an access key of AWS, also one from a file. */
export type BedrockAccess =
  | { type: 'key'; apiKey: string }
  | { type: 'access-key'; region: string; credentials: AwsCredentials }
  | { type: 'file'; region: string; path: string; profile: string };

export interface Credential {
  headers: Readonly<Record<string, string>>;
  /** Headers that depend on the request; null: none. @throws `router.provider_misconfigured` */
  sign: ((path: string, body: string) => Promise<Readonly<Record<string, string>>>) | null;
  /** What errors must not quote. */
  secrets(): readonly string[];
}

/** Of the requests of one provider. @param baseUrl whose host is signed */
export function credentialOf(access: BedrockAccess, baseUrl: string, clock: Clock): Credential {
  if (access.type === 'key') {
    const { apiKey } = access;
    return { headers: { authorization: `Bearer ${apiKey}` }, sign: null, secrets: () => [apiKey] };
  }
  const sign = requestSigner({ baseUrl, region: access.region, clock });
  if (access.type === 'access-key') {
    const { credentials } = access;
    return { headers: {}, sign: (path, body) => sign(credentials, path, body), secrets: () => secretsOf(credentials) };
  }
  const { path: file, profile } = access;
  const reread = new RereadFile(file, clock, (text) => sharedCredentials(text, profile));
  return {
    headers: {},
    async sign(path, body) {
      const credentials = reread.current();
      if (credentials === null) {
        const why = reread.failure === null ? `has none of the profile ${profile} that can be read` : `can't be read (${reread.failure})`;
        throw new SwitchyardError('router.provider_misconfigured', `the credentials file of the provider ${why}`);
      }
      return sign(credentials, path, body);
    },
    secrets: () => reread.recent.flatMap(secretsOf),
  };
}

/** Errors of AWS quote the canonical request, which has the session token. */
function secretsOf({ accessKeyId, secretAccessKey, sessionToken }: AwsCredentials): string[] {
  return [secretAccessKey, accessKeyId, ...(sessionToken === null ? [] : [sessionToken])];
}
