import { z } from 'zod';
import type { DescribeError, UpstreamError } from '../http-stream/to-error.ts';

/** A text, or of servers that validate field by field a list. */
const detail = z.union([z.string(), z.array(z.object({ msg: z.string(), loc: z.array(z.union([z.string(), z.number()])) }))]);
const message = z.union([z.string(), z.object({ detail }).transform(wordsOf)]);

/** `{error: {…}}` as OpenAI has it, `{error: "…"}`, the error's fields at the top, or a list of one of these. */
const errorObject = z.object({
  message: message.nullable().catch(null),
  type: z.string().nullable().catch(null),
  code: z.union([z.string(), z.number()]).nullable().catch(null),
});
const UNDESCRIBED: UpstreamError = { message: null, type: null, code: null };

export function describeError(body: unknown): UpstreamError {
  const error = Array.isArray(body) ? errorOf(body[0]) : body;
  if (typeof error === 'string') return { ...UNDESCRIBED, message: error };
  const described = errorObject.safeParse(error).data ?? UNDESCRIBED;
  return described.message === null ? { ...described, message: z.object({ detail }).transform(wordsOf).safeParse(error).data ?? null } : described;
}

/** @param tooLong type or message of a refusal because of too long a prompt, beside OpenAI's; null: none */
export function describeErrorOf(tooLong: RegExp | null): DescribeError {
  if (tooLong === null) return describeError;
  return (error) => {
    const described = describeError(error);
    return tooLong.test(`${described.type} ${described.message}`) ? { ...described, code: 'context_length_exceeded' } : described;
  };
}

function errorOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'error' in value ? value.error : value;
}

function wordsOf({ detail: problems }: { detail: z.infer<typeof detail> }): string {
  if (typeof problems === 'string') return problems;
  return problems.map(({ msg, loc }) => `${loc.join('.')}: ${msg}`).join('; ');
}
