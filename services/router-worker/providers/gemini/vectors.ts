import { z } from 'zod';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { JsonRequest } from '../http-stream/begin-exchange.ts';
import type { VectorDialect } from '../http-stream/vectors.ts';
import type { VectorCall, VectorInput, Vectors } from '../provider.ts';
import { tokenCount } from '../token-count.ts';
import type { Credential, GeminiAccess } from './credential.ts';
import { type PrepareDeps, prepareCall } from './prepare-call.ts';
import { toContentParts } from './to-content-parts.ts';

/** Most requests of one batch. */
export const STUDIO_INPUTS = 100;
/** Its newer models take one; `max_inputs` of an endpoint says more of others. */
export const VERTEX_INPUTS = 1;

/** The vendor's tasks by the words of other APIs. */
const TASKS: Readonly<Record<string, string>> = {
  query: 'RETRIEVAL_QUERY',
  search_query: 'RETRIEVAL_QUERY',
  document: 'RETRIEVAL_DOCUMENT',
  search_document: 'RETRIEVAL_DOCUMENT',
  passage: 'RETRIEVAL_DOCUMENT',
  classification: 'CLASSIFICATION',
  clustering: 'CLUSTERING',
  semantic_similarity: 'SEMANTIC_SIMILARITY',
};
const TASK = /^[A-Z][A-Z_]{1,63}$/;

const values = z.array(z.number()).transform((numbers) => Float32Array.from(numbers));
const batch = z.object({
  embeddings: z.array(z.object({ values })),
  usageMetadata: z.object({ promptTokenCount: tokenCount }).nullish().catch(null),
});
const predicted = z.object({
  predictions: z.array(
    z.object({
      embeddings: z.object({
        values,
        statistics: z.object({ token_count: tokenCount }).nullish().catch(null),
      }),
    }),
  ),
});

/** POST …:batchEmbedContents of AI Studio, or …:predict of Vertex AI, which takes texts alone. */
export function vectorsOf(access: GeminiAccess, credential: Credential, getter: PrepareDeps['getter']): VectorDialect {
  const isStudio = access.type === 'key';
  return {
    prepare: (call, signal) =>
      prepared(call, (messages) => prepareCall({ model: call.model, request: { messages } }, signal, { getter, signatures: null, contentAt })),
    requestFor: (call) => (isStudio ? batchRequest(call, credential) : predictRequest(call, credential)),
    read: isStudio ? readBatch : readPredicted,
  };
}

/** Path in the caller's request. */
function contentAt(index: number): string {
  return `input[${index}].content`;
}

/** Pictures by address are fetched, as for a chat. */
async function prepared(call: VectorCall, fetch: (messages: ChatMessage[]) => ReturnType<typeof prepareCall>): Promise<VectorCall> {
  if (call.inputs.every((input) => typeof input === 'string')) return call;
  const { request } = await fetch(call.inputs.map((input) => ({ role: 'user', content: contentOf(input) })));
  return { ...call, inputs: request.messages.map(({ content }) => content ?? '') };
}

function batchRequest({ model, inputs, dimensions, inputType }: VectorCall, { pathOf, headers }: Credential): JsonRequest {
  const task = taskOf(inputType);
  const requests = inputs.map((input, index) => ({
    model: model.includes('/') ? model : `models/${model}`,
    content: { parts: toContentParts(contentOf(input), contentAt(index)) },
    ...(task !== null && { taskType: task }),
    ...(dimensions !== null && { outputDimensionality: dimensions }),
  }));
  return { path: `${pathOf(model)}:batchEmbedContents`, headers: headers(), body: { requests } };
}

function predictRequest({ model, inputs, dimensions, inputType }: VectorCall, { pathOf, headers }: Credential): JsonRequest {
  const task = taskOf(inputType);
  const instances = inputs.map((input, index) => ({ content: textOf(input, index), ...(task !== null && { task_type: task }) }));
  const parameters = dimensions === null ? {} : { parameters: { outputDimensionality: dimensions } };
  return { path: `${pathOf(model)}:predict`, headers: headers(), body: { instances, ...parameters } };
}

/** Null: the vendor has no such task. */
function taskOf(inputType: string | null): string | null {
  if (inputType === null) return null;
  return TASKS[inputType.toLowerCase()] ?? (TASK.test(inputType) ? inputType : null);
}

function contentOf(input: VectorInput): Exclude<ChatMessage['content'], null | undefined> {
  return typeof input === 'string' ? input : input.filter((item) => typeof item === 'object');
}

/** @throws `router.provider_refused` for an input with something else than texts */
function textOf(input: VectorInput, index: number): string {
  const parts = toContentParts(contentOf(input), contentAt(index));
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  if (texts.length === parts.length) return texts.join('\n');
  const param = `input[${index}]`;
  throw new SwitchyardError('router.provider_refused', `${param}: the API of Vertex AI takes texts alone`, { details: { param } });
}

function readBatch(body: unknown): Vectors {
  const { embeddings, usageMetadata } = batch.parse(body);
  return { vectors: embeddings.map((one) => one.values), promptTokens: usageMetadata?.promptTokenCount ?? null };
}

function readPredicted(body: unknown): Vectors {
  const { predictions } = predicted.parse(body);
  const counts = predictions.flatMap(({ embeddings: { statistics } }) => statistics?.token_count ?? []);
  const isCounted = counts.length === predictions.length;
  return {
    vectors: predictions.map(({ embeddings }) => embeddings.values),
    promptTokens: isCounted ? counts.reduce((sum, count) => sum + count, 0) : null,
  };
}
