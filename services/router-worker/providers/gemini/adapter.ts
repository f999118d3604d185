import type { OutboundRules } from '#shared/http/outbound-guard.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream } from '../http-stream.ts';
import type { OpenedAdapter } from '../provider.ts';
import { credentialOf, type GeminiAccess } from './credential.ts';
import { describeError } from './describe-error.ts';
import { prepareCall } from './prepare-call.ts';
import { signatureCache } from './signature-cache.ts';
import { ChunkReader, type SignatureHandler } from './to-parts.ts';
import { toRequest } from './to-request.ts';
import { vectorsOf } from './vectors.ts';

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
  const onSignature: SignatureHandler = (callId, signature) => signatures?.store(callId, signature);
  const [readerFor, citingReaderFor] = [readerWith(onSignature, false), readerWith(onSignature, true)];
  const dialect: HttpDialect = {
    prepare: (call, signal) => prepareCall(call, signal, { getter, signatures }),
    requestFor: (call) => ({
      path: `${credential.pathOf(call.model)}:streamGenerateContent?alt=sse`,
      headers: credential.headers(),
      body: toRequest(call, { safety, takesCallIds: access.type === 'key' }),
      readerFor: call.searchesWeb === true ? citingReaderFor : readerFor,
    }),
    describeError,
    vectors: vectorsOf(access, credential, getter),
  };
  const adapter = httpStream({ ...options, apiKey: credential.secrets, dialect });
  return {
    ...adapter,
    async close() {
      await Promise.all([adapter.close(), getter.close()]);
    },
  };
}

/** Not a closure of the request's function: it would retain the body until the answer's end. */
function readerWith(onSignature: SignatureHandler, searchesWeb: boolean): (contentType: string) => AnswerReader {
  return (contentType) => sseAnswer(new ChunkReader(onSignature, searchesWeb), contentType);
}
