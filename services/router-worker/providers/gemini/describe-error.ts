import { z } from 'zod';
import type { UpstreamError } from '../http-stream/to-error.ts';

/** google.rpc.Status: `details` are messages of several types. */
const detail = z.object({ reason: z.string().optional(), retryDelay: z.string().optional() });
const status = z.object({
  code: z.number().nullable().catch(null),
  message: z.string().nullable().catch(null),
  status: z.string().nullable().catch(null),
  details: z.array(detail.catch({})).catch([]),
});

const TOO_LONG = /input token count .{0,40}exceeds|exceeds the maximum number of tokens/i;
const UNAUTHORIZED = 401;
const DELAY = /^(\d+(?:\.\d+)?)s$/;

/** `error` of a body; where the API streams no events, the body is a list of such objects. */
export function describeError(error: unknown): UpstreamError {
  if (Array.isArray(error)) return describeError(errorOf(error[0]));
  const parsed = status.safeParse(error).data;
  if (parsed === undefined) return { message: typeof error === 'string' ? error : null, type: null, code: null };
  const { code: number, message, status: type, details } = parsed;
  const reason = TOO_LONG.test(message ?? '') ? 'context_length_exceeded' : (details.find(({ reason: given }) => given !== undefined)?.reason ?? null);
  const [, seconds] = DELAY.exec(details.find(({ retryDelay }) => retryDelay !== undefined)?.retryDelay ?? '') ?? [];
  return {
    message,
    type,
    code: reason ?? type,
    ...statusOf(number, reason),
    ...(seconds === undefined ? {} : { retryAfterMs: Math.round(Number(seconds) * 1_000) }),
  };
}

/** A wrong key is a 400. */
function statusOf(number: number | null, reason: string | null): { status?: number } {
  if (reason === 'API_KEY_INVALID') return { status: UNAUTHORIZED };
  return number !== null && number >= 400 && number < 600 ? { status: number } : {};
}

function errorOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'error' in value ? value.error : value;
}
