import { z } from 'zod';
import { exactObject } from '../exact-numbers.ts';
import { tokenCount } from '../token-count.ts';

/** The fields of an upstream's chunk that are read. Vendors omit, add and misname fields: little is required, and null counts as absent. */
const count = tokenCount.nullish();

const usage = z.object({
  prompt_tokens: tokenCount,
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count, audio_tokens: count, video_tokens: count }).nullish(),
  completion_tokens_details: z
    .object({
      reasoning_tokens: count,
      audio_tokens: count,
      image_tokens: count,
      accepted_prediction_tokens: count,
      rejected_prediction_tokens: count,
    })
    .nullish(),
  /** DeepSeek's name of cached tokens. */
  prompt_cache_hit_tokens: count,
});

/** Text, or from some vendors a list of typed pieces. */
const plainPiece = z.object({ type: z.string().optional(), text: z.string().nullish() });
/** Mistral has its reasoning there. */
const piece = plainPiece.extend({ thinking: z.array(plainPiece).nullish().catch(null) });
const content = z.union([z.string(), z.array(piece)]).nullish();

const toolCall = z.object({
  index: z.number().int().min(0).nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.union([z.string(), exactObject]).nullish() }).nullish(),
});

const tokenLogprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.number().int()).nullish() });
const tokenLogprobs = z.array(tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob).nullish() })).nullish();

const delta = z.object({
  content,
  reasoning: z.string().nullish(),
  /** DeepSeek, Qwen, vLLM and others. */
  reasoning_content: z.string().nullish(),
  refusal: z.string().nullish(),
  /** Few answers have these four: they are checked where they are read (attachments.ts), so that a chunk of text is not. */
  reasoning_details: z.unknown().optional(),
  annotations: z.unknown().optional(),
  images: z.unknown().optional(),
  audio: z.unknown().optional(),
  tool_calls: z.array(toolCall).nullish(),
  /** The legacy form of tool calls. */
  function_call: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

const choice = z.object({
  index: z.number().int().nullish(),
  delta: delta.nullish(),
  /** In place of `delta` when an upstream doesn't stream. */
  message: delta.nullish(),
  finish_reason: z.string().nullish(),
  logprobs: z.object({ content: tokenLogprobs, refusal: tokenLogprobs }).nullish().catch(null),
});

export const upstreamChunk = z.object({
  /** These three are read once per answer, and checked then. */
  id: z.unknown().optional(),
  system_fingerprint: z.unknown().optional(),
  service_tier: z.unknown().optional(),
  choices: z.array(choice).nullish(),
  usage: usage.nullish().catch(null),
  /** Groq. */
  x_groq: z
    .object({ usage: usage.nullish().catch(null) })
    .nullish()
    .catch(null),
  /** An object, a text, or an empty one without meaning. */
  error: z.unknown().optional(),
});

export type UpstreamChunk = z.infer<typeof upstreamChunk>;
export type UpstreamDelta = z.infer<typeof delta>;
export type UpstreamPiece = z.infer<typeof piece>;
export type UpstreamToolCall = z.infer<typeof toolCall>;
export type UpstreamUsage = z.infer<typeof usage>;
export type UpstreamLogprobs = NonNullable<z.infer<typeof choice>['logprobs']>;
