import { z } from 'zod';
import { exactObject } from '../exact-numbers.ts';
import { tokenCount } from '../token-count.ts';

/** The fields of the API's events that are read. Unknown events, blocks and deltas are ignored, since the API adds some without notice. */
const count = tokenCount.nullish();

const usage = z
  .object({
    input_tokens: count,
    output_tokens: count,
    cache_creation_input_tokens: count,
    cache_creation: z.object({ ephemeral_1h_input_tokens: count }).nullish().catch(null),
    cache_read_input_tokens: count,
    output_tokens_details: z.object({ thinking_tokens: count }).nullish().catch(null),
    server_tool_use: z.object({ web_search_requests: count }).nullish().catch(null),
    service_tier: z.string().nullish().catch(null),
  })
  .nullish()
  .catch(null);

const index = z.number().int().min(0);
const input = exactObject.nullish();

const knownBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string().nullish(), citations: z.array(z.unknown()).nullish() }),
  z.object({ type: z.literal('thinking'), thinking: z.string().nullish(), signature: z.string().nullish() }),
  z.object({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.object({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input }),
  z.object({ type: z.literal('server_tool_use'), id: z.string(), name: z.string(), input }),
]);
/** Results of the upstream's own tools, and what comes later. */
const otherBlock = z
  .object({ type: typeBeside(knownBlock.options), tool_use_id: z.string().nullish(), content: z.unknown().optional() })
  .transform(({ type, tool_use_id: callId = null, content }) => ({ type: 'other' as const, name: type, callId, content }));
const block = z.union([knownBlock, otherBlock]);

const knownDelta = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text_delta'), text: z.string() }),
  z.object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
  z.object({ type: z.literal('thinking_delta'), thinking: z.string() }),
  z.object({ type: z.literal('signature_delta'), signature: z.string() }),
  z.object({ type: z.literal('citations_delta'), citation: z.unknown().optional() }),
]);
const delta = z.union([knownDelta, z.object({ type: typeBeside(knownDelta.options) }).transform(() => ({ type: 'other' as const }))]);

const stop = z.object({
  stop_reason: z.string().nullish(),
  stop_details: z.object({ explanation: z.string().nullish() }).nullish().catch(null),
});

const head = z.object({ id: z.string().nullish().catch(null), usage });

export const apiMessage = stop.extend({ type: z.literal('message'), content: z.array(block), ...head.shape });

const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message_start'), message: head }),
  z.object({ type: z.literal('content_block_start'), index, content_block: block }),
  z.object({ type: z.literal('content_block_delta'), index, delta }),
  z.object({ type: z.literal('content_block_stop'), index }),
  z.object({ type: z.literal('message_delta'), delta: stop, usage }),
  z.object({ type: z.literal('message_stop') }),
  z.object({ type: z.literal('error'), error: z.unknown().optional() }),
]);

const READ: ReadonlySet<string> = new Set(event.options.map((option) => option.shape.type.value));
const named = z.object({ type: z.string() });

export type ApiEvent = z.infer<typeof event>;
export type ApiBlock = z.infer<typeof block>;
export type ApiDelta = z.infer<typeof delta>;
export type ApiStop = z.infer<typeof stop>;
export type ApiMessage = z.infer<typeof apiMessage>;
export type ApiHead = z.infer<typeof head>;
export type ApiUsage = z.infer<typeof usage>;

/** Null: an event that is not read. @throws ZodError for what is no event */
export function readEvent(value: unknown): ApiEvent | null {
  return READ.has(named.parse(value).type) ? event.parse(value) : null;
}

export interface TextDelta {
  index: number;
  delta: { text: string };
}

/** Fast validation of the most frequent event. True only where the schema would return the same values. */
export function isTextDelta(value: unknown): value is TextDelta {
  if (!isObject(value) || value.type !== 'content_block_delta' || !isObject(value.delta)) return false;
  const { delta: given, index: at } = value;
  return given.type === 'text_delta' && typeof given.text === 'string' && Number.isSafeInteger(at) && Number(at) >= 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** A type that no option has: what is malformed in a known form is not taken for an unknown one. */
function typeBeside(options: readonly { shape: { type: { value: string } } }[]) {
  const types = new Set(options.map(({ shape }) => shape.type.value));
  return z.string().refine((type) => !types.has(type));
}
