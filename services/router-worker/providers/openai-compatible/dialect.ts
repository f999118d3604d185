import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { openAiCompatible } from './adapter.ts';
import { openAiCompatibleConfig } from './config.ts';
import { extensionsOf } from './extensions.ts';

/** Some of its models take `max_completion_tokens` only, and all take it. */
const OPENAI_HOST = 'api.openai.com';

/** Any upstream with POST /chat/completions. */
export const openAiCompatibleDialect = dialect(
  openAiCompatibleConfig,
  ({ slug, name = slug, base_url: baseUrl, api_key: apiKey, data_policy: policy, extensions: given }) => ({
    slug,
    name,
    address: addressOf(baseUrl),
    reasoningFormat: null,
    dataPolicy: { ...(policy ?? { trains: true, retains: true }), isDistillable: false },
    open: ({ secret, ...settings }) => {
      const { hostname } = new URL(baseUrl);
      const maxTokensField = hostname === OPENAI_HOST ? 'max_completion_tokens' : 'max_tokens';
      const extensions = given === undefined ? extensionsOf(hostname) : new Set(given);
      return openAiCompatible({ ...settings, slug, name, baseUrl, apiKey: apiKey === undefined ? null : secret(apiKey), maxTokensField, extensions });
    },
  }),
);
