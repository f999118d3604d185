import { UNKNOWN_POLICY, usualPolicies } from '#shared/config/data-policy.ts';
import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { openAiCompatible } from './adapter.ts';
import { openAiCompatibleConfig } from './config.ts';
import { profileOf } from './profiles.ts';

/** Any upstream with POST /chat/completions. */
export const openAiCompatibleDialect = dialect(
  openAiCompatibleConfig,
  ({ slug, name = slug, profile: named, base_url: given, api_version: version, api_key: apiKey, data_policy: policy, extensions }) => {
    const profile = profileOf(named, given === undefined ? null : new URL(given).hostname);
    const baseUrl = withVersion(given ?? profile.baseUrl ?? '', version);
    // A host alone is no statement of the operator on the account's terms.
    const known = policy ?? (named === undefined ? undefined : usualPolicies.get(named));
    return {
      slug,
      name,
      address: addressOf(baseUrl),
      reasoningFormat: null,
      vectors: { maxInputs: profile.vectors.maxInputs, takesTokens: profile.vectors.takesTokens },
      webSearch: null,
      readsPdf: false,
      dataPolicy: { ...(known ?? UNKNOWN_POLICY), isDistillable: false },
      open: ({ secret, ...settings }) =>
        openAiCompatible({
          ...settings,
          slug,
          name,
          baseUrl,
          apiKey: apiKey === undefined ? null : secret(apiKey),
          profile: extensions === undefined ? profile : { ...profile, extensions: new Set(extensions) },
        }),
    };
  },
);

function withVersion(baseUrl: string, version: string | undefined): string {
  if (version === undefined) return baseUrl;
  const url = new URL(baseUrl);
  url.searchParams.set('api-version', version);
  return url.href;
}
