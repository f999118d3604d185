import { LRUCache } from 'lru-cache';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type HttpDialect, type HttpStreamOptions, httpStream, type OutgoingRequest } from '../http-stream.ts';
import type { OpenedAdapter, UpstreamRequest } from '../provider.ts';
import { adaptTraits } from './adapt-traits.ts';
import { describeError } from './describe-error.ts';
import { type ModelTraits, traitsOf } from './model-traits.ts';
import { MessageReader } from './to-parts.ts';
import { toRequest } from './to-request.ts';

const API_VERSION = '2023-06-01';
/** Models with traits from refusals. */
const MAX_CORRECTED = 512;

export interface AnthropicOptions extends Omit<HttpStreamOptions, 'dialect'> {
  apiKey: string;
  /** `bearer`: the credential is a token of OAuth or of a gateway. */
  auth: 'x-api-key' | 'bearer';
  /** Values of `anthropic-beta`. */
  beta: readonly string[];
  streamsArgumentsEagerly: boolean;
}

/** Adapter for upstreams with POST /v1/messages. */
export function anthropic({ auth, beta, streamsArgumentsEagerly, ...options }: AnthropicOptions): OpenedAdapter {
  const credential: Record<string, string> = auth === 'bearer' ? { authorization: `Bearer ${options.apiKey}` } : { 'x-api-key': options.apiKey };
  const headers = { ...credential, 'anthropic-version': API_VERSION, ...(beta.length === 0 ? {} : { 'anthropic-beta': beta.join(',') }) };
  return httpStream({ ...options, dialect: messages(headers, streamsArgumentsEagerly) });
}

function messages(headers: Readonly<Record<string, string>>, isEager: boolean): HttpDialect {
  const corrected = new LRUCache<string, ModelTraits>({ max: MAX_CORRECTED });
  const requestWith = (call: UpstreamRequest, traits: ModelTraits): OutgoingRequest => {
    const { body, answerTool } = toRequest(call, { traits, isEager });
    return {
      path: '/v1/messages',
      headers,
      body,
      readerFor: (contentType) => sseAnswer(new MessageReader(answerTool), contentType),
      adapted(errorText) {
        // With `require_parameters` nothing is dropped: the caller gets the upstream's error instead.
        const adapted = call.request.provider?.require_parameters === true ? null : adaptTraits(errorText, traits);
        if (adapted === null) return null;
        const retry = requestWith(call, adapted);
        return { ...retry, accepted: () => void corrected.set(call.model, adapted) };
      },
    };
  };
  return { requestFor: (call) => requestWith(call, corrected.get(call.model) ?? traitsOf(call.model)), describeError };
}
