import { LRUCache } from 'lru-cache';
import { sseAnswer } from '../http-stream/parts-of-body.ts';
import { type AnswerReader, type HttpDialect, type HttpStreamOptions, httpStream, type OutgoingRequest } from '../http-stream.ts';
import type { OpenedAdapter, UpstreamRequest } from '../provider.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { describeError } from './describe-error.ts';
import type { Extension } from './extensions.ts';
import { PartReader } from './to-parts.ts';
import { type ParameterCompatibility, toRequest } from './to-request.ts';

/** Cached names of the token limit, one per model. */
const MAX_COMPATIBILITIES = 512;

export interface OpenAiCompatibleOptions extends Omit<HttpStreamOptions, 'dialect'> {
  apiKey: string | null;
  /** The name of the token limit to try first. */
  maxTokensField: ParameterCompatibility['maxTokensField'];
  /** Absent: none. */
  extensions?: ReadonlySet<Extension>;
}

/** Adapter for upstreams with POST /chat/completions. Vendors' differences are options, or learned from errors. */
export function openAiCompatible({ maxTokensField, extensions = new Set(), ...options }: OpenAiCompatibleOptions): OpenedAdapter {
  return httpStream({ ...options, dialect: chatCompletions(options, { maxTokensField, refused: new Set() }, extensions) });
}

function chatCompletions(
  { slug, apiKey }: Pick<HttpStreamOptions, 'slug' | 'apiKey'>,
  initial: ParameterCompatibility,
  extensions: ReadonlySet<Extension>,
): HttpDialect {
  const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  const compatibilities = new Compatibilities(initial);
  const requestWith = (call: UpstreamRequest, compatibility: ParameterCompatibility): OutgoingRequest => {
    const body = toRequest(call, compatibility, { slug, extensions });
    return {
      path: '/chat/completions',
      headers,
      body,
      readerFor,
      accepted: () => compatibilities.cache(call.model, compatibility),
      adapted(errorText) {
        if (requiresParameters(call)) return null;
        const adapted = adaptParameters(errorText, body, compatibility);
        return adapted === null ? null : requestWith(call, adapted);
      },
    };
  };
  return {
    requestFor: (call) => requestWith(call, compatibilities.of(call)),
    describeError,
  };
}

/** Not a closure of the request's function: it would retain the body until the answer's end. */
function readerFor(contentType: string): AnswerReader {
  return sseAnswer(new PartReader(), contentType);
}

/** With `require_parameters` nothing is dropped: the caller gets the upstream's error instead. */
function requiresParameters({ request }: UpstreamRequest): boolean {
  return request.provider?.require_parameters === true;
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
    return requiresParameters(call) ? { ...compatibility, refused: this.#initial.refused } : compatibility;
  }

  /** Caches the accepted name of the token limit. Other refused parameters are not cached: another value may be accepted. */
  cache(model: string, { maxTokensField }: ParameterCompatibility): void {
    if (this.#byModel.get(model)?.maxTokensField === maxTokensField) return;
    this.#byModel.set(model, { ...this.#initial, maxTokensField });
  }
}
