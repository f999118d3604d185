import { z } from 'zod';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { dataIn } from '../parts/text-in.ts';
import { chatUsageIn } from './usage-of.ts';

/** More output items than an answer has. */
const place = z.number().int().min(0).max(4_095);
const text = z.string().min(1);

const delta = z.discriminatedUnion('type', [
  z.object({ type: z.literal('response.output_text.delta'), delta: text }).transform(({ delta: it }): ProviderPart => ({ type: 'text-delta', text: it })),
  z.object({ type: z.literal('response.refusal.delta'), delta: text }).transform(({ delta: it }): ProviderPart => ({ type: 'refusal-delta', text: it })),
  z
    .object({ type: z.enum(['response.reasoning_text.delta', 'response.reasoning_summary_text.delta']), delta: text })
    .transform(({ delta: it }): ProviderPart => ({ type: 'reasoning-delta', text: it })),
  z
    .object({ type: z.literal('response.function_call_arguments.delta'), output_index: place, delta: text })
    .transform(({ output_index: index, delta: it }): ProviderPart => ({ type: 'tool-call-delta', index, arguments: it })),
  z
    .object({
      type: z.literal('response.output_item.added'),
      output_index: place,
      item: z.object({ type: z.literal('function_call'), call_id: z.string(), name: z.string() }),
    })
    .transform(({ output_index: index, item: { call_id: id, name } }): ProviderPart => ({ type: 'tool-call-start', index, id, name })),
  z
    .object({
      type: z.literal('response.output_item.done'),
      item: z.object({ type: z.literal('image_generation_call'), result: z.string() }),
    })
    .transform(({ item: { result: url } }): ProviderPart => ({ type: 'image', url })),
]);

/** The part that an event came from, as far as it counts; tool calls have the place of their items as number. Empty for any other event. */
export function partsInEvent(value: unknown): ProviderPart[] {
  const { data } = delta.safeParse(value);
  return data === undefined ? [] : [data];
}

/** What an event or a whole body says of the whole answer, as a completion has it: model, provider, usage. */
export function statedInEvent(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return null;
  const response: unknown = 'response' in value ? value.response : value;
  if (typeof response !== 'object' || response === null) return null;
  const { model, provider, usage } = response as Record<string, unknown>;
  return { model, provider, usage: chatUsageIn(usage) };
}

const numbered = z.object({ sequence_number: z.number().int().min(0) });

/** Numbers begin with 0. 0: there is no event with a number. */
export function eventsUpTo(sse: Uint8Array): number {
  const { data } = numbered.safeParse(dataIn(sse)[0]);
  return data === undefined ? 0 : data.sequence_number + 1;
}
