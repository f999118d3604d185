import { z } from 'zod';
import type { UpstreamError } from '../http-stream/to-error.ts';

/** `{error: {…}}` as OpenAI has it, `{error: "…"}`, or the error's fields at the top. */
const errorObject = z.object({
  message: z.string().nullable().catch(null),
  type: z.string().nullable().catch(null),
  code: z.union([z.string(), z.number()]).nullable().catch(null),
});
const UNDESCRIBED: UpstreamError = { message: null, type: null, code: null };

export function describeError(error: unknown): UpstreamError {
  if (typeof error === 'string') return { ...UNDESCRIBED, message: error };
  return errorObject.safeParse(error).data ?? UNDESCRIBED;
}
