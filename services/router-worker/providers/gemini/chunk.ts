import { z } from 'zod';
import { exactObject } from '../exact-numbers.ts';
import { tokenCount } from '../token-count.ts';

/** The fields of GenerateContentResponse that are read; null counts as absent. */
const count = tokenCount.nullish();

const usage = z.object({
  promptTokenCount: count,
  toolUsePromptTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
  cachedContentTokenCount: count,
});

const part = z.object({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  thoughtSignature: z.string().nullish(),
  functionCall: z.object({ id: z.string().nullish(), name: z.string(), args: exactObject.nullish() }).nullish(),
  inlineData: z.object({ mimeType: z.string(), data: z.string() }).nullish(),
});

const source = z.object({ web: z.object({ uri: z.string(), title: z.string().nullish() }).nullish() });
/** In bytes of UTF-8, from the start of a part. */
const offset = z.number().min(0).transform(Math.round).nullish();
const segment = z.object({ startIndex: offset, endIndex: offset, text: z.string().nullish() });
const support = z.object({ segment: segment.nullish(), groundingChunkIndices: z.array(z.number()).nullish() });
const token = z.object({ token: z.string(), logProbability: z.number() });

const candidate = z.object({
  index: z.number().nullish(),
  content: z.object({ parts: z.array(part).nullish() }).nullish(),
  finishReason: z.string().nullish(),
  finishMessage: z.string().nullish(),
  groundingMetadata: z
    .object({
      groundingChunks: z.array(source.catch({})).nullish(),
      groundingSupports: z.array(support.catch({})).nullish().catch(null),
      webSearchQueries: z.array(z.string()).nullish().catch(null),
    })
    .nullish()
    .catch(null),
  logprobsResult: z
    .object({ chosenCandidates: z.array(token), topCandidates: z.array(z.object({ candidates: z.array(token) })).nullish() })
    .nullish()
    .catch(null),
});

export const geminiChunk = z.object({
  candidates: z.array(candidate).nullish(),
  usageMetadata: usage.nullish().catch(null),
  responseId: z.string().nullish().catch(null),
  promptFeedback: z.object({ blockReason: z.string().nullish(), blockReasonMessage: z.string().nullish() }).nullish(),
  error: z.unknown().optional(),
});

export type GeminiChunk = z.infer<typeof geminiChunk>;
export type GeminiCandidate = z.infer<typeof candidate>;
export type GeminiGrounding = NonNullable<GeminiCandidate['groundingMetadata']>;
export type GeminiSegment = z.infer<typeof segment>;
export type GeminiPart = z.infer<typeof part>;
export type GeminiUsage = z.infer<typeof usage>;

/** A text in the middle of an answer, the most frequent chunk. */
export interface TextChunk {
  candidates: [{ content: { parts: [{ text: string }] } }];
  usageMetadata?: unknown;
}

/** Fast validation of it. True only where the schema would return the same values. */
export function isTextChunk(value: unknown): value is TextChunk {
  if (!isObject(value) || !Array.isArray(value.candidates) || value.candidates.length !== 1 || isSet(value.error) || isSet(value.promptFeedback)) return false;
  const [only]: unknown[] = value.candidates;
  if (!isObject(only) || isSet(only.finishReason) || isSet(only.groundingMetadata) || isSet(only.logprobsResult) || !isObject(only.content)) return false;
  const { parts } = only.content;
  if (!Array.isArray(parts) || parts.length !== 1) return false;
  const [piece]: unknown[] = parts;
  if (!isObject(piece) || typeof piece.text !== 'string') return false;
  return !isSet(piece.thought) && !isSet(piece.thoughtSignature) && !isSet(piece.functionCall) && !isSet(piece.inlineData) && (only.index ?? 0) === 0;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Null: unreadable. */
export function readUsage(value: unknown): GeminiUsage | null {
  return usage.safeParse(value).data ?? null;
}
