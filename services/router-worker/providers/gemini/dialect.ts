import { UNKNOWN_POLICY } from '#shared/config/data-policy.ts';
import { dialect } from '../dialect.ts';
import { addressOf } from '../http-stream/address-of.ts';
import { gemini } from './adapter.ts';
import { geminiConfig } from './config.ts';
import { GEMINI_FORMAT } from './to-parts.ts';
import { STUDIO_INPUTS, VERTEX_INPUTS } from './vectors.ts';

const STUDIO_URL = 'https://generativelanguage.googleapis.com';

/** Any upstream with POST …/models/{model}:streamGenerateContent. */
export const geminiDialect = dialect(geminiConfig, ({ slug, name = slug, base_url: given, api_key: apiKey, vertex, safety, data_policy: policy }) => {
  const baseUrl = given ?? (vertex === undefined ? STUDIO_URL : vertexUrl(vertex.location));
  return {
    slug,
    name,
    address: addressOf(baseUrl),
    reasoningFormat: GEMINI_FORMAT,
    vectors: { maxInputs: vertex === undefined ? STUDIO_INPUTS : VERTEX_INPUTS, takesTokens: false },
    webSearch: { besideTools: false, takes: [] },
    readsPdf: true,
    dataPolicy: { ...(policy ?? UNKNOWN_POLICY), isDistillable: false },
    open: ({ secret, ...settings }) =>
      gemini({
        ...settings,
        slug,
        name,
        baseUrl,
        access:
          vertex === undefined
            ? { type: 'key', apiKey: apiKey === undefined ? '' : secret(apiKey) }
            : { type: 'vertex', project: vertex.project, location: vertex.location, tokenFile: vertex.token_file },
        safety: safety?.toUpperCase() ?? null,
      }),
  };
});

function vertexUrl(location: string): string {
  return location === 'global' ? 'https://aiplatform.googleapis.com' : `https://${location}-aiplatform.googleapis.com`;
}
