import { z } from 'zod';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';

const text = z.string().nullish();
const delta = z.object({
  content: text,
  reasoning: text,
  refusal: text,
  tool_calls: z
    .array(
      z.object({
        index: z.number().int().min(0).max(1_023),
        id: z.string().optional(),
        function: z.object({ name: z.string().optional(), arguments: z.string().optional() }),
      }),
    )
    .optional(),
  images: z.array(z.object({ image_url: z.object({ url: z.string() }) })).optional(),
});
const chunk = z.object({ choices: z.array(z.object({ delta })) });

/** The parts that a chunk came from, as far as they count: empty for one without content, and for anything else. */
export function partsInChunk(value: unknown): ProviderPart[] {
  const { data } = chunk.safeParse(value);
  return data?.choices.flatMap((choice) => partsOf(choice.delta)) ?? [];
}

function partsOf({ content, reasoning, refusal, tool_calls: calls = [], images = [] }: z.infer<typeof delta>): ProviderPart[] {
  const parts: ProviderPart[] = [];
  if (content) parts.push({ type: 'text-delta', text: content });
  if (reasoning) parts.push({ type: 'reasoning-delta', text: reasoning });
  if (refusal) parts.push({ type: 'refusal-delta', text: refusal });
  for (const { index, id, function: called } of calls) {
    if (id !== undefined) parts.push({ type: 'tool-call-start', index, id, name: called.name ?? '' });
    if (called.arguments) parts.push({ type: 'tool-call-delta', index, arguments: called.arguments });
  }
  for (const { image_url } of images) parts.push({ type: 'image', url: image_url.url });
  return parts;
}
