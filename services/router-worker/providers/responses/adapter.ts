import { LRUCache } from 'lru-cache';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream, type OutgoingRequest } from '../http-stream.ts';
import { adaptParameters } from '../openai-compatible/adapt-parameters.ts';
import { describeError } from '../openai-compatible/describe-error.ts';
import type { OpenedAdapter, UpstreamRequest } from '../provider.ts';
import { ResponseReader } from './to-parts.ts';
import { toRequest } from './to-request.ts';

/** Models without encrypted reasoning. */
const MAX_MODELS = 512;

export interface ResponsesOptions extends Omit<HttpStreamOptions, 'dialect'> {
  apiKey: string | null;
}

/** Adapter for upstreams with POST /responses. */
export function responses(options: ResponsesOptions): OpenedAdapter {
  return httpStream({ ...options, dialect: responsesApi(options.apiKey) });
}

function responsesApi(apiKey: string | null): HttpDialect {
  const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  const withoutInclude = new LRUCache<string, true>({ max: MAX_MODELS });
  const requestWith = (call: UpstreamRequest, refused: ReadonlySet<string>): OutgoingRequest => {
    const body = toRequest(call, refused);
    return {
      path: '/responses',
      headers,
      body,
      readerFor,
      accepted() {
        // Another value of another parameter may be accepted.
        if (refused.has('include')) withoutInclude.set(call.model, true);
      },
      adapted(errorText) {
        // With `require_parameters` nothing is dropped: the caller gets the upstream's error instead.
        if (call.request.provider?.require_parameters === true) return null;
        const adapted = adaptParameters(errorText, body, { maxTokensField: 'max_tokens', refused });
        return adapted === null ? null : requestWith(call, adapted.refused);
      },
    };
  };
  return { requestFor: (call) => requestWith(call, new Set(withoutInclude.has(call.model) ? ['include'] : [])), describeError };
}

/** Not a closure of the request's function: it would retain the body until the answer's end. */
function readerFor(contentType: string): AnswerReader {
  return sseAnswer(new ResponseReader(), contentType);
}
