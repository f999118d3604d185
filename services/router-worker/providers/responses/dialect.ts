import { UNKNOWN_POLICY } from '#shared/config/data-policy.ts';
import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { responses } from './adapter.ts';
import { responsesConfig } from './config.ts';
import { RESPONSES_FORMAT } from './to-reasoning-items.ts';

/** Any upstream with POST /responses. */
export const responsesDialect = dialect(responsesConfig, ({ slug, name = slug, base_url: baseUrl, api_key: apiKey, data_policy: policy }) => ({
  slug,
  name,
  address: addressOf(baseUrl),
  reasoningFormat: RESPONSES_FORMAT,
  vectors: null,
  webSearch: { besideTools: true, takes: ['include_domains', 'user_location'] },
  readsPdf: true,
  dataPolicy: { ...(policy ?? UNKNOWN_POLICY), isDistillable: false },
  open: ({ secret, ...settings }) => responses({ ...settings, slug, name, baseUrl, apiKey: apiKey === undefined ? null : secret(apiKey) }),
}));
