import { UNKNOWN_POLICY } from '#shared/config/data-policy.ts';
import { ANTHROPIC_FORMAT } from '../anthropic/to-thinking-blocks.ts';
import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { bedrock } from './adapter.ts';
import { bedrockConfig } from './config.ts';
import type { BedrockAccess } from './credential.ts';

/** Amazon Bedrock's Converse API, and any upstream with POST /model/{model}/converse-stream. */
export const bedrockDialect = dialect(
  bedrockConfig,
  ({ slug, name = slug, region = '', base_url: given, api_key: apiKey, credentials, credentials_file: file, data_policy: policy }) => {
    const baseUrl = given ?? regionUrl(region);
    const accessWith = (secret: (reference: string) => string): BedrockAccess => {
      if (file !== undefined) return { type: 'file', region, path: file.path, profile: file.profile ?? 'default' };
      if (credentials === undefined) return { type: 'key', apiKey: apiKey === undefined ? '' : secret(apiKey) };
      const { access_key_id: id, secret_access_key: key, session_token: token } = credentials;
      return {
        type: 'access-key',
        region,
        credentials: { accessKeyId: secret(id), secretAccessKey: secret(key), sessionToken: token === undefined ? null : secret(token) },
      };
    };
    return {
      slug,
      name,
      address: addressOf(baseUrl),
      reasoningFormat: ANTHROPIC_FORMAT,
      vectors: null,
      webSearch: null,
      readsPdf: true,
      dataPolicy: { ...(policy ?? UNKNOWN_POLICY), isDistillable: false },
      open: ({ secret, ...settings }) => bedrock({ ...settings, slug, name, baseUrl, access: accessWith(secret) }),
    };
  },
);

function regionUrl(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}
