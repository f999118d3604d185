import { isTokenCount } from '../token-count.ts';
import type { UpstreamChunk } from './chunk.ts';

/**
 * Fast validation of common chunks: texts, a finish reason, integer counts. True only where the schema would return the same values; all else goes to the
 * schema.
 */
export function isPlainChunk(value: unknown): value is UpstreamChunk {
  if (!isObject(value) || isSet(value.x_groq)) return false;
  const { choices, usage } = value;
  if (isSet(usage) && !isPlainUsage(usage)) return false;
  if (!isSet(choices)) return true;
  return Array.isArray(choices) && choices.every(isPlainChoice);
}

function isPlainChoice(value: unknown): boolean {
  if (!isObject(value) || isSet(value.message) || isSet(value.logprobs)) return false;
  const { index, delta, finish_reason: reason } = value;
  return isCountOrNone(index) && isTextOrNone(reason) && (!isSet(delta) || isPlainDelta(delta));
}

function isPlainDelta(value: unknown): boolean {
  return (
    isObject(value) &&
    hasNone(value.tool_calls) &&
    !isSet(value.function_call) &&
    isTextOrNone(value.content) &&
    isTextOrNone(value.reasoning) &&
    isTextOrNone(value.reasoning_content) &&
    isTextOrNone(value.refusal)
  );
}

function isPlainUsage(value: unknown): boolean {
  if (!isObject(value) || !isTokenCount(value.prompt_tokens)) return false;
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = value;
  return (
    isTokenCountOrNone(value.completion_tokens) &&
    isTokenCountOrNone(value.prompt_cache_hit_tokens) &&
    (!isSet(prompt) || holdsCounts(prompt, PROMPT_COUNTS)) &&
    (!isSet(completion) || holdsCounts(completion, COMPLETION_COUNTS))
  );
}

const PROMPT_COUNTS = ['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'video_tokens'];
const COMPLETION_COUNTS = ['reasoning_tokens', 'audio_tokens', 'image_tokens', 'accepted_prediction_tokens', 'rejected_prediction_tokens'];

function holdsCounts(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => isTokenCountOrNone(value[name]));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** vLLM sends an empty list with each text. */
function hasNone(list: unknown): boolean {
  return !isSet(list) || (Array.isArray(list) && list.length === 0);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTextOrNone(value: unknown): boolean {
  return typeof value === 'string' || !isSet(value);
}

function isTokenCountOrNone(value: unknown): boolean {
  return !isSet(value) || isTokenCount(value);
}

function isCountOrNone(value: unknown): boolean {
  return !isSet(value) || (Number.isSafeInteger(value) && Number(value) >= 0);
}
