import type { ModelConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { VectorInput } from '../providers/provider.ts';
import { type Modality, modalitiesIn } from './content-fit.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';
import { MAX_VECTOR_CHARS, vectorChars } from './vector-text.ts';

/** How a candidate gives the vectors of a call. */
export interface VectorPlan {
  inputs: readonly VectorInput[];
  /** Of one request to the provider. */
  maxInputs: number;
  /** To ask for; null: as many as the model has. */
  dimensions: number | null;
  /** That each vector must have; null: not known. */
  expectedDimensions: number | null;
  format: EmbeddingCall['format'];
  inputType: string | null;
}

/**
 * Refuses what no endpoint of the models can be sent.
 * @throws `request.invalid` naming `dimensions` that the models do not have, or `input` of a kind that no endpoint takes; `request.too_large` for more vectors
 *   than one answer may have
 */
export function refuseUnembeddable(request: ChatRequest, embedding: EmbeddingCall, all: readonly ModelEndpoint[]): void {
  const [first] = all;
  if (first === undefined) return;
  const { dimensions, tokens, format } = embedding;
  const refusal = dimensions === null ? null : refusalOf(dimensions, first.model);
  if (refusal !== null) throw invalid('dimensions', refusal);
  const able = all.filter(({ provider }) => provider.vectors !== null);
  if (able.length > 0 && tokens !== null && !able.some(takesTokens)) throw invalid('input', 'no endpoint of the model takes token ids: send texts');
  const needed = modalitiesIn(request);
  if (able.length > 0 && !able.some((modelEndpoint) => takes(modelEndpoint, needed))) {
    throw invalid('input', `no endpoint of the model takes ${needed.join(', ')}: send texts`);
  }
  const expected = dimensions ?? first.model.embeddings?.dimensions ?? 0;
  if (inputsOf(request, embedding).length * vectorChars(expected, format) > MAX_VECTOR_CHARS) throw tooManyVectors();
}

export function tooManyVectors(): SwitchyardError {
  const message = `The vectors of this request are longer than ${MAX_VECTOR_CHARS} characters together: send fewer inputs, or ask for base64 or fewer dimensions`;
  return new SwitchyardError('request.too_large', message, { details: { param: 'input' } });
}

function refusalOf(dimensions: number, { id, embeddings }: ModelConfig): string | null {
  const most = embeddings?.dimensions;
  if (most === undefined || dimensions === most) return null;
  if (dimensions > most) return `the vectors of ${id} have ${most} dimensions`;
  return embeddings?.shortens === false ? `the vectors of ${id} have ${most} dimensions and can't be shortened` : null;
}

/** Excludes endpoints whose provider gives no vectors, or does not take inputs of this kind. */
export function takingInputs(request: ChatRequest, { tokens }: EmbeddingCall, all: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  const needed = modalitiesIn(request);
  return all.filter(
    (modelEndpoint) =>
      passes(modelEndpoint, modelEndpoint.provider.vectors !== null, 'embeddings', exclusions) &&
      passes(modelEndpoint, tokens === null || takesTokens(modelEndpoint), 'token_ids', exclusions) &&
      passes(modelEndpoint, takes(modelEndpoint, needed), 'modality', exclusions),
  );
}

function takesTokens({ provider }: ModelEndpoint): boolean {
  return provider.vectors?.takesTokens === true;
}

/** Other than a chat's, such an endpoint takes texts alone unless it declares more. */
function takes({ endpoint: { modalities = [] } }: ModelEndpoint, needed: readonly Modality[]): boolean {
  return needed.every((modality) => modalities.includes(modality));
}

export function vectorPlanOf({ model, endpoint, provider }: ModelEndpoint, request: ChatRequest, embedding: EmbeddingCall): VectorPlan {
  const { dimensions, format, inputType } = embedding;
  const known = model.embeddings?.dimensions ?? null;
  return {
    inputs: inputsOf(request, embedding),
    maxInputs: endpoint.max_inputs ?? provider.vectors?.maxInputs ?? 1,
    // A model that can't shorten its vectors may refuse the parameter.
    dimensions: dimensions === known && model.embeddings?.shortens === false ? null : dimensions,
    expectedDimensions: dimensions ?? known,
    format,
    inputType,
  };
}

function inputsOf({ messages }: ChatRequest, { tokens }: EmbeddingCall): readonly VectorInput[] {
  return tokens ?? messages.map(({ content }) => content ?? '');
}

function invalid(param: string, message: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param}: ${message}`, { details: { param } });
}
