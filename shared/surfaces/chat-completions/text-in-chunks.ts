import { z } from 'zod';
import { dataIn } from '../parts/text-in.ts';

const chunk = z.object({ choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })) });

/** The answer's text in chunks: what calls of actors had before they asked for `parts`. */
export function textInChunks(sse: Uint8Array): string {
  return dataIn(sse)
    .map((data) => chunk.safeParse(data).data?.choices[0]?.delta.content ?? '')
    .join('');
}
