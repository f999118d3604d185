import { LRUCache } from 'lru-cache';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { PRICED_FIELDS, type PricedField } from '#shared/contracts/router/priced-fields.ts';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream, type OutgoingRequest } from '../http-stream.ts';
import type { OpenedAdapter, UpstreamRequest } from '../provider.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { describeErrorOf } from './describe-error.ts';
import type { Profile } from './profiles.ts';
import { PartReader } from './to-parts.ts';
import { type ParameterCompatibility, requiresParameters, toRequest } from './to-request.ts';
import { vectorsOf } from './vectors.ts';

/** Cached names of the token limit, one per model. */
const MAX_COMPATIBILITIES = 512;

export interface OpenAiCompatibleOptions extends Omit<HttpStreamOptions, 'dialect'> {
  apiKey: string | null;
  profile: Profile;
}

/** Adapter for upstreams with POST /chat/completions, and POST /embeddings where they have vectors. Vendors' differences are in the profile, or learned from errors. */
export function openAiCompatible({ profile, ...options }: OpenAiCompatibleOptions): OpenedAdapter {
  return httpStream({ ...options, dialect: chatCompletions(options, profile) });
}

function chatCompletions({ slug, apiKey }: Pick<OpenAiCompatibleOptions, 'slug' | 'apiKey'>, profile: Profile): HttpDialect {
  const headers = credential(apiKey, profile);
  const traits = { slug, form: profile };
  const compatibilities = new Compatibilities({ maxTokensField: profile.maxTokensField, refused: new Set() });
  const readerFor = readersOf(profile);
  const requestWith = (call: UpstreamRequest, compatibility: ParameterCompatibility): OutgoingRequest => {
    const body = toRequest(call, compatibility, traits);
    return {
      path: profile.path.replace('{model}', () => encodeURIComponent(call.model)),
      headers,
      body,
      readerFor,
      omitted: omittedFrom(body, call.request),
      accepted: () => compatibilities.cache(call.model, compatibility),
      adapted(errorText) {
        if (requiresParameters(call.request)) return null;
        const adapted = adaptParameters(errorText, body, compatibility);
        return adapted === null ? null : requestWith(call, adapted);
      },
    };
  };
  return {
    requestFor: (call) => requestWith(call, compatibilities.of(call)),
    describeError: describeErrorOf(profile.tooLong),
    vectors: vectorsOf(profile, headers),
  };
}

/** What the profile leaves out, or the upstream has refused. */
function omittedFrom(body: Record<string, unknown>, request: ChatRequest): readonly PricedField[] {
  return PRICED_FIELDS.filter((name) => request[name] !== undefined && request[name] !== null && !Object.hasOwn(body, name));
}

function credential(apiKey: string | null, { keyHeader }: Profile): Record<string, string> {
  if (apiKey === null) return {};
  return keyHeader === 'bearer' ? { authorization: `Bearer ${apiKey}` } : { [keyHeader]: apiKey };
}

/** Not a closure of the request's function: it would retain the body until the answer's end. */
function readersOf({ countsReasoningApart }: Profile): (contentType: string) => AnswerReader {
  return (contentType) => sseAnswer(new PartReader(countsReasoningApart), contentType);
}

/** What upstream models accept, by model. */
class Compatibilities {
  readonly #initial: ParameterCompatibility;
  readonly #byModel = new LRUCache<string, ParameterCompatibility>({ max: MAX_COMPATIBILITIES });

  constructor(initial: ParameterCompatibility) {
    this.#initial = initial;
  }

  of(call: UpstreamRequest): ParameterCompatibility {
    const compatibility = this.#byModel.get(call.model) ?? this.#initial;
    return requiresParameters(call.request) ? { ...compatibility, refused: this.#initial.refused } : compatibility;
  }

  /** Caches the accepted name of the token limit. Other refused parameters are not cached: another value may be accepted. */
  cache(model: string, { maxTokensField }: ParameterCompatibility): void {
    if (this.#byModel.get(model)?.maxTokensField === maxTokensField) return;
    this.#byModel.set(model, { ...this.#initial, maxTokensField });
  }
}
