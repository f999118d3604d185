import { z } from 'zod';
import { tokenCount } from '../token-count.ts';

/** The fields of the API's events that are read. Unknown events and items are ignored. */
const count = tokenCount.nullish();
const usage = z
  .object({
    input_tokens: tokenCount,
    output_tokens: tokenCount,
    input_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
    output_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
  })
  .nullish()
  .catch(null);

const index = z.number().int().min(0);
const annotation = z.object({
  type: z.string(),
  url: z.string().nullish(),
  title: z.string().nullish(),
  start_index: z.number().nullish(),
  end_index: z.number().nullish(),
});
const content = z.object({ type: z.string(), text: z.string().nullish(), refusal: z.string().nullish(), annotations: z.array(annotation).nullish() });
const item = z.object({
  type: z.string(),
  id: z.string().nullish(),
  call_id: z.string().nullish(),
  name: z.string().nullish(),
  arguments: z.string().nullish(),
  encrypted_content: z.string().nullish(),
  summary: z.array(z.object({ text: z.string() })).nullish(),
  /** Of a web search call. */
  action: z.object({ type: z.string() }).nullish().catch(null),
  content: z.array(content).nullish().catch(null),
});
const tokenLogprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.number().int()).nullish() });
const logprobs = z.array(tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob.partial({ token: true, logprob: true })).nullish() })).nullish();

const response = z.object({
  id: z.string().nullish(),
  status: z.string().nullish(),
  service_tier: z.string().nullish(),
  error: z.unknown().optional(),
  incomplete_details: z.object({ reason: z.string().nullish() }).nullish(),
  output: z.array(item).nullish().catch(null),
  usage,
});
export const apiResponse = response.extend({ object: z.literal('response') });

const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('response.created'), response }),
  z.object({ type: z.literal('response.output_item.added'), output_index: index, item }),
  z.object({ type: z.literal('response.output_item.done'), output_index: index, item }),
  z.object({ type: z.literal('response.output_text.delta'), delta: z.string(), logprobs: logprobs.catch(null) }),
  z.object({ type: z.literal('response.output_text.annotation.added'), annotation }),
  z.object({ type: z.literal('response.refusal.delta'), delta: z.string() }),
  z.object({ type: z.literal('response.function_call_arguments.delta'), output_index: index, delta: z.string() }),
  z.object({ type: z.literal('response.reasoning_summary_part.added'), output_index: index, summary_index: z.number() }),
  z.object({ type: z.literal('response.reasoning_summary_text.delta'), output_index: index, delta: z.string() }),
  z.object({ type: z.literal('response.reasoning_text.delta'), output_index: index, delta: z.string() }),
  z.object({ type: z.literal('response.completed'), response }),
  z.object({ type: z.literal('response.incomplete'), response }),
  z.object({ type: z.literal('response.failed'), response }),
  z.looseObject({ type: z.literal('error') }),
]);

const READ: ReadonlySet<string> = new Set(event.options.map((option) => option.shape.type.value));
const named = z.object({ type: z.string() });

export type ApiEvent = z.infer<typeof event>;
export type ApiItem = z.infer<typeof item>;
export type ApiResponse = z.infer<typeof response>;
export type ApiUsage = z.infer<typeof usage>;
export type ApiAnnotation = z.infer<typeof annotation>;
export type ApiLogprobs = z.infer<typeof logprobs>;

/** Null: an event that is not read. @throws ZodError for what is no event */
export function readEvent(value: unknown): ApiEvent | null {
  return READ.has(named.parse(value).type) ? event.parse(value) : null;
}

/** Fast validation of the most frequent event. True only where the schema would return the same values. */
export function isTextDelta(value: unknown): value is { delta: string } {
  if (typeof value !== 'object' || value === null || !('type' in value) || value.type !== 'response.output_text.delta') return false;
  if (!('delta' in value) || typeof value.delta !== 'string') return false;
  return !('logprobs' in value) || value.logprobs === null || (Array.isArray(value.logprobs) && value.logprobs.length === 0);
}
