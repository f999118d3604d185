import { UNKNOWN_POLICY } from '#shared/config/data-policy.ts';
import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { anthropic } from './adapter.ts';
import { anthropicConfig } from './config.ts';
import { ANTHROPIC_FORMAT } from './to-thinking-blocks.ts';

const ANTHROPIC_URL = 'https://api.anthropic.com';

/** Any upstream with POST /v1/messages. */
export const anthropicDialect = dialect(
  anthropicConfig,
  ({ slug, name = slug, base_url: baseUrl = ANTHROPIC_URL, api_key: apiKey, data_policy: policy, auth, beta, eager_tool_arguments: isEager }) => ({
    slug,
    name,
    address: addressOf(baseUrl),
    reasoningFormat: ANTHROPIC_FORMAT,
    vectors: null,
    webSearch: { besideTools: true, takes: ['include_domains', 'exclude_domains', 'user_location'] },
    readsPdf: true,
    dataPolicy: { ...(policy ?? UNKNOWN_POLICY), isDistillable: false },
    open: ({ secret, ...settings }) =>
      anthropic({
        ...settings,
        slug,
        name,
        baseUrl,
        apiKey: secret(apiKey),
        auth: auth ?? 'x-api-key',
        beta: beta ?? [],
        streamsArgumentsEagerly: isEager ?? false,
      }),
  }),
);
