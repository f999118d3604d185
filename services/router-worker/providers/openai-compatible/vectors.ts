import { z } from 'zod';
import type { VectorDialect } from '../http-stream/vectors.ts';
import type { VectorCall, VectorInput, Vectors } from '../provider.ts';
import { tokenCount } from '../token-count.ts';
import type { Profile } from './profiles.ts';
import { vectorIn } from './vector-in.ts';

const vector = z.union([z.array(z.number()).transform((numbers) => Float32Array.from(numbers)), z.string().transform(decoded)]);
/** `index` is missing at some servers, which keep the order. */
const list = z.object({
  data: z.array(z.object({ index: z.number().int().min(0).nullish(), embedding: vector })),
  usage: z.object({ prompt_tokens: tokenCount }).nullish().catch(null),
});

/** POST /embeddings. Numbers and base64 are read alike: servers that don't know `encoding_format` ignore it. */
export function vectorsOf(profile: Profile, headers: Readonly<Record<string, string>>): VectorDialect {
  return {
    requestFor: (call) => ({
      path: profile.path.replace(/\/chat\/completions$/, '/embeddings').replace('{model}', () => encodeURIComponent(call.model)),
      headers,
      body: bodyOf(call, profile),
    }),
    read,
  };
}

function bodyOf({ model, inputs, dimensions, inputType, user }: VectorCall, { vectors: form, leftOut }: Profile): Record<string, unknown> {
  return {
    model,
    input: inputs.map(inputOf),
    ...(form.givesBase64 && { encoding_format: 'base64' }),
    ...(dimensions !== null && { [form.dimensionsField]: dimensions }),
    ...(inputType !== null && form.takesInputType && { input_type: inputType }),
    ...(user !== null && !leftOut.has('user') && { user }),
  };
}

/** Texts alone are one text: few servers have inputs of several items. */
function inputOf(input: VectorInput): unknown {
  if (typeof input === 'string') return input;
  const texts = input.flatMap((item) => (typeof item === 'object' && item.type === 'text' ? [item.text] : []));
  if (texts.length === input.length) return texts.join('\n');
  return typeof input[0] === 'number' ? input : { content: input };
}

/** @throws ZodError for a body that is no such list, and for indexes that are not those of a list */
function read(body: unknown): Vectors {
  const { data, usage } = list.parse(body);
  const vectors = new Array<Float32Array | null>(data.length).fill(null);
  for (const [position, { index, embedding }] of data.entries()) {
    const at = index ?? position;
    if (vectors[at] !== null) throw new SyntaxError(`the index ${at} is there twice, or beyond the list`);
    vectors[at] = embedding;
  }
  return { vectors: vectors.filter((one) => one !== null), promptTokens: usage?.prompt_tokens ?? null };
}

function decoded(base64: string, { addIssue }: z.core.$RefinementCtx): Float32Array {
  const read = vectorIn(base64);
  if (read === null) addIssue({ code: 'custom', message: 'is no base64 of floats' });
  return read ?? new Float32Array();
}
