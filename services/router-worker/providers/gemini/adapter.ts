import type { Clock } from '#shared/clock.ts';
import type { OutboundRules } from '#shared/http/outbound-guard.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream } from '../http-stream.ts';
import type { OpenedAdapter } from '../provider.ts';
import { describeError } from './describe-error.ts';
import { prepareCall } from './prepare-call.ts';
import { signatureCache } from './signature-cache.ts';
import { ChunkReader, type SignatureHandler } from './to-parts.ts';
import { toRequest } from './to-request.ts';
import { TokenFile } from './token-file.ts';

/** AI Studio by key, or Vertex AI by the token in a file. */
export type GeminiAccess = { type: 'key'; apiKey: string } | { type: 'vertex'; project: string; location: string; tokenFile: string };

export interface GeminiOptions extends Omit<HttpStreamOptions, 'dialect' | 'apiKey'> {
  access: GeminiAccess;
  /** Threshold of all categories of harm; null: the vendor's. */
  safety: string | null;
  /** For pictures at URLs of callers. */
  outboundRules: OutboundRules;
  /** For signatures that clients don't send back; null: none. */
  cache: Cache | null;
}

/** Adapter for upstreams with POST …/models/{model}:streamGenerateContent. */
export function gemini({ access, safety, outboundRules, cache, ...options }: GeminiOptions): OpenedAdapter {
  const credential = credentialOf(access, options.clock);
  const getter = options.outbound.openGetter({ rules: outboundRules });
  const signatures = cache === null ? null : signatureCache(cache, options.slug);
  const readerFor = readerWith((callId, signature) => signatures?.store(callId, signature));
  const dialect: HttpDialect = {
    prepare: (call, signal) => prepareCall(call, signal, { getter, signatures }),
    requestFor: (call) => ({
      path: `${credential.pathOf(call.model)}:streamGenerateContent?alt=sse`,
      headers: credential.headers(),
      body: toRequest(call, { safety, takesCallIds: access.type === 'key' }),
      readerFor,
    }),
    describeError,
  };
  const adapter = httpStream({ ...options, apiKey: credential.secret, dialect });
  return {
    ...adapter,
    async close() {
      await Promise.all([adapter.close(), getter.close()]);
    },
  };
}

interface Credential {
  pathOf(model: string): string;
  /** @throws `router.provider_misconfigured` */
  headers(): Record<string, string>;
  secret(): string | null;
}

function credentialOf(access: GeminiAccess, clock: Clock): Credential {
  if (access.type === 'key') {
    const { apiKey } = access;
    return {
      pathOf: (model) => `/v1beta/${model.includes('/') ? model : `models/${model}`}`,
      headers: () => ({ 'x-goog-api-key': apiKey }),
      secret: () => apiKey,
    };
  }
  const { project, location, tokenFile } = access;
  const token = new TokenFile(tokenFile, clock);
  return {
    pathOf: (model) => `/v1/projects/${project}/locations/${location}/publishers/google/models/${model}`,
    headers: () => ({ authorization: `Bearer ${token.current()}` }),
    secret: () => token.last,
  };
}

/** Not a closure of the request's function: it would retain the body until the answer's end. */
function readerWith(onSignature: SignatureHandler): (contentType: string) => AnswerReader {
  return (contentType) => sseAnswer(new ChunkReader(onSignature), contentType);
}
