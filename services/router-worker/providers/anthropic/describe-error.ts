import { z } from 'zod';
import type { UpstreamError } from '../http-stream/to-error.ts';

/** `error` of `{type: 'error', error, request_id}`. */
const errorObject = z.object({
  message: z.string().nullable().catch(null),
  type: z.string().nullable().catch(null),
  details: z
    .object({ error_code: z.string().nullable().catch(null) })
    .nullable()
    .catch(null),
});

/** Causes that the API names in the message alone, all under `invalid_request_error` with status 400. */
const CAUSES: readonly (readonly [words: RegExp, cause: Pick<UpstreamError, 'code' | 'status'>])[] = [
  [/prompt is too long|exceeds? (?:the )?(?:model's )?context (?:limit|window)/i, { code: 'context_length_exceeded' }],
  [/content filtering policy|usage policy/i, { code: 'content_policy_violation' }],
  [/credit balance is too low|spend limit/i, { code: 'billing_error', status: 402 }],
];

export function describeError(error: unknown): UpstreamError {
  if (typeof error === 'string') return { message: error, type: null, code: null };
  const { message = null, type = null, details = null } = errorObject.safeParse(error).data ?? {};
  const cause = CAUSES.find(([words]) => words.test(message ?? ''))?.[1];
  return { message, type, code: details?.error_code ?? null, ...cause };
}
