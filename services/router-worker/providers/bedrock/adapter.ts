import { LRUCache } from 'lru-cache';
import type { OutboundRules } from '#shared/http/outbound-guard.ts';
import { fetchPictures, withPictures } from '../fetch-pictures.ts';
import { partsOfWhole } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream, type OutgoingRequest } from '../http-stream.ts';
import type { OpenedAdapter, UpstreamRequest } from '../provider.ts';
import { adaptTraits } from './adapt-traits.ts';
import { type BedrockAccess, type Credential, credentialOf } from './credential.ts';
import { describeError } from './describe-error.ts';
import { type BedrockTraits, bedrockTraits } from './model-traits.ts';
import { ConverseReader, type ReaderOptions } from './to-parts.ts';
import { toRequest } from './to-request.ts';

/** Models with traits from refusals. */
const MAX_CORRECTED = 512;
const MEDIA_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
const EVENT_STREAM = 'application/vnd.amazon.eventstream';
const JSON_TYPE = 'application/json';

export interface BedrockOptions extends Omit<HttpStreamOptions, 'dialect' | 'apiKey'> {
  access: BedrockAccess;
  /** For pictures at URLs of callers. */
  outboundRules: OutboundRules;
}

/** Adapter for upstreams with POST /model/{model}/converse-stream, and /converse for models without tools in a stream. */
export function bedrock({ access, outboundRules, ...options }: BedrockOptions): OpenedAdapter {
  const credential = credentialOf(access, options.baseUrl, options.clock);
  const getter = options.outbound.openGetter({ rules: outboundRules });
  const dialect: HttpDialect = {
    async prepare(call, signal) {
      const pictures = await fetchPictures(call.request.messages, signal, { getter, mediaTypes: MEDIA_TYPES });
      if (pictures.size === 0) return call;
      return { ...call, request: { ...call.request, messages: call.request.messages.map((message) => withPictures(message, pictures)) } };
    },
    requestFor: requestsWith(credential),
    describeError,
  };
  const adapter = httpStream({ ...options, apiKey: credential.secrets, dialect });
  return {
    ...adapter,
    async close() {
      await Promise.all([adapter.close(), getter.close()]);
    },
  };
}

function requestsWith({ headers: ofCredential, sign }: Credential): HttpDialect['requestFor'] {
  const corrected = new LRUCache<string, BedrockTraits>({ max: MAX_CORRECTED });
  const requestWith = (call: UpstreamRequest, traits: BedrockTraits): OutgoingRequest => {
    const { body, answerTool } = toRequest(call, traits);
    const isStreamed = traits.streamsTools || !('toolConfig' in body);
    const path = `/model/${encodeURIComponent(call.model)}/${isStreamed ? 'converse-stream' : 'converse'}`;
    return {
      path,
      headers: { accept: isStreamed ? EVENT_STREAM : JSON_TYPE, ...ofCredential },
      body,
      ...(sign !== null && { sign: (text) => sign(path, text) }),
      readerFor: (contentType) => answerReader({ answerTool, signsReasoning: traits.family === 'claude' }, contentType),
      adapted(errorText) {
        const adapted = adaptTraits(errorText, traits);
        if (adapted === null) return null;
        // With `require_parameters` nothing is dropped: the caller gets the upstream's error instead.
        if (call.request.provider?.require_parameters === true && adapted.streamsTools === traits.streamsTools) return null;
        const retry = requestWith(call, adapted);
        return { ...retry, accepted: () => void corrected.set(call.model, adapted) };
      },
    };
  };
  return (call) => requestWith(call, corrected.get(call.model) ?? bedrockTraits(call.model));
}

/** Frames, or the JSON body of a whole answer. Anything else is read no further: it is no answer. */
function answerReader(options: ReaderOptions, contentType: string): AnswerReader {
  const reader = new ConverseReader(options);
  if (contentType.includes(JSON_TYPE)) return { progress: reader, partsOf: partsOfWhole(reader) };
  if (contentType === '' || contentType.includes(EVENT_STREAM)) return { progress: reader, partsOf: (piece) => reader.readPiece(piece) };
  reader.ended = true;
  reader.hasUsage = true;
  return { progress: reader, partsOf: () => [] };
}
