import { z } from 'zod';
import { tokenCount } from '../token-count.ts';

/** The fields of the API's events and answers that are read. Unknown events, blocks and deltas are ignored, since the API adds some without notice. */
const count = tokenCount.nullish();
const index = z.number().int().min(0);

const usage = z.object({
  inputTokens: count,
  outputTokens: count,
  cacheReadInputTokens: count,
  cacheWriteInputTokens: count,
  cacheDetails: z
    .array(z.object({ ttl: z.string().nullish().catch(null), inputTokens: count }))
    .nullish()
    .catch(null),
});
const tier = z.object({ type: z.string() }).nullish().catch(null);

const toolUse = z.object({ toolUseId: z.string(), name: z.string() });

export const blockStart = z.object({ contentBlockIndex: index, start: z.object({ toolUse: toolUse.nullish() }).nullish() });

const reasoningDelta = z.object({ text: z.string().nullish(), signature: z.string().nullish(), redactedContent: z.string().nullish() });
export const blockDelta = z.object({
  contentBlockIndex: index,
  delta: z.object({
    text: z.string().nullish(),
    toolUse: z.object({ input: z.string() }).nullish(),
    reasoningContent: reasoningDelta.nullish(),
  }),
});
export const blockStop = z.object({ contentBlockIndex: index });
export const messageStop = z.object({ stopReason: z.string() });
export const metadata = z.object({ usage: usage.nullish().catch(null), serviceTier: tier });

const block = z.object({
  text: z.string().nullish(),
  toolUse: toolUse.extend({ input: z.unknown() }).nullish(),
  reasoningContent: z
    .object({
      reasoningText: z.object({ text: z.string().nullish(), signature: z.string().nullish() }).nullish(),
      redactedContent: z.string().nullish(),
    })
    .nullish(),
});
/** A whole answer. */
export const converseAnswer = z.object({
  output: z.object({ message: z.object({ content: z.array(block) }) }),
  stopReason: z.string(),
  ...metadata.shape,
});

export type BlockDelta = z.infer<typeof blockDelta>;
export type AnswerBlock = z.infer<typeof block>;
export type Metadata = z.infer<typeof metadata>;
export type ApiUsage = z.infer<typeof usage>;

/** Fast validation of a text, the most frequent delta. True only where the schema would return the same values. */
export function isTextDelta(value: unknown): value is { contentBlockIndex: number; delta: { text: string } } {
  if (!isObject(value) || !isObject(value.delta)) return false;
  const { delta, contentBlockIndex: at } = value;
  return typeof delta.text === 'string' && !isSet(delta.toolUse) && !isSet(delta.reasoningContent) && Number.isSafeInteger(at) && Number(at) >= 0;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
