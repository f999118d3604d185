import { setImmediate as nextTurn } from 'node:timers/promises';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../call-signal.ts';
import type { PartHandler, ProviderAdapter, ProviderTimeouts, VectorInput, Vectors } from '../providers/provider.ts';
import type { Candidate } from './candidates.ts';
import { tooManyVectors, type VectorPlan } from './embedding-fit.ts';
import type { VectorBudget } from './vector-budget.ts';
import { MAX_VECTOR_CHARS, vectorChars, vectorText } from './vector-text.ts';

/** Of a model whose dimensions are not known, for the budget. */
const ASSUMED_DIMENSIONS = 4_096;
/** Some 20 ms of a processor: other calls of this worker go on in between. */
const NUMBERS_PER_TURN = 65_536;

export interface Embedding {
  candidate: Pick<Candidate, 'endpoint' | 'provider' | 'request'>;
  plan: VectorPlan;
  timeouts: ProviderTimeouts;
  budget: VectorBudget;
}

/**
 * One attempt of a call for vectors: requests of at most `maxInputs`, one after the other. Emits the vectors and the usage so far after each, and a `finish` part
 * at the end.
 * @throws as `ProviderAdapter.embed`; `router.provider_unavailable` for vectors that do not fit the inputs; `request.too_large`
 */
export async function embedInputs({ candidate, plan, timeouts, budget }: Embedding, adapter: ProviderAdapter, signal: CallSignal, onParts: PartHandler) {
  const { endpoint, provider, request } = candidate;
  if (adapter.embed === undefined) throw new SwitchyardError('config.invalid', `the provider ${provider.slug} gives no vectors`);
  const { inputs, maxInputs, dimensions, inputType, format, expectedDimensions } = plan;
  const release = budget.enter(inputs.length * vectorChars(expectedDimensions ?? ASSUMED_DIMENSIONS, format));
  try {
    const writer = new VectorWriter(provider.name, plan, signal);
    const user = request.user ?? null;
    for (let from = 0; from < inputs.length; from += maxInputs) {
      signal.throwIfAborted();
      const batch = inputs.slice(from, from + maxInputs);
      const given = await adapter.embed({ model: endpoint.upstream_model, inputs: batch, dimensions, inputType, user, timeouts }, signal);
      const vectors = await writer.written(given, batch);
      const promptTokens = writer.promptTokens;
      const usage =
        promptTokens === null ? [] : [{ type: 'usage' as const, usage: { promptTokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 } }];
      if (!onParts([{ type: 'vectors', vectors }, ...usage])) return;
    }
    onParts([{ type: 'finish', reason: 'stop', nativeReason: null }]);
  } finally {
    release();
  }
}

/** Checks and writes the vectors of one attempt. */
class VectorWriter {
  readonly #name: string;
  readonly #format: VectorPlan['format'];
  readonly #signal: CallSignal;
  /** Null until the first vector, where the configuration does not say it. */
  #dimensions: number | null;
  #chars = 0;
  #numbers = 0;
  #promptTokens: number | null = 0;

  constructor(name: string, { format, expectedDimensions }: VectorPlan, signal: CallSignal) {
    this.#name = name;
    this.#format = format;
    this.#dimensions = expectedDimensions;
    this.#signal = signal;
  }

  /** Of all requests so far; null: the upstream did not count each, and its inputs are no token ids. */
  get promptTokens(): number | null {
    return this.#promptTokens;
  }

  async written({ vectors, promptTokens }: Vectors, inputs: readonly VectorInput[]): Promise<string[]> {
    if (vectors.length !== inputs.length) throw this.#malformed(`${vectors.length} vectors for ${inputs.length} inputs`);
    const counted = promptTokens ?? idsIn(inputs);
    this.#promptTokens = counted === null || this.#promptTokens === null ? null : this.#promptTokens + counted;
    const texts: string[] = [];
    for (const vector of vectors) {
      this.#check(vector);
      const text = vectorText(vector, this.#format);
      this.#chars += text.length;
      if (this.#chars > MAX_VECTOR_CHARS) throw tooManyVectors();
      texts.push(text);
      this.#numbers += vector.length;
      if (this.#numbers < NUMBERS_PER_TURN) continue;
      this.#numbers = 0;
      await nextTurn();
      this.#signal.throwIfAborted();
    }
    return texts;
  }

  #check(vector: Float32Array): void {
    this.#dimensions ??= vector.length;
    if (vector.length !== this.#dimensions || vector.length === 0) {
      throw this.#malformed(`a vector of ${vector.length} dimensions in place of ${this.#dimensions}`);
    }
    for (let at = 0; at < vector.length; at += 1) if (!Number.isFinite(vector[at])) throw this.#malformed('a vector with a value that is no number');
  }

  #malformed(what: string): SwitchyardError {
    return new SwitchyardError('router.provider_unavailable', `${this.#name} sent ${what}`);
  }
}

/** Null: the inputs are no token ids. */
function idsIn(inputs: readonly VectorInput[]): number | null {
  let ids = 0;
  for (const input of inputs) {
    if (typeof input === 'string' || typeof input[0] !== 'number') return null;
    ids += input.length;
  }
  return ids;
}
