import { z } from 'zod';
import { shortened } from '#shared/errors/shortened.ts';
import { type ErrorCode, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ErrorEvent } from './error-event.ts';
import { type Secrets, withoutSecrets } from './quoted-secrets.ts';

const MAX_RAW_CHARS = 8_192;
const MAX_REASON_CHARACTERS = 500;

const MAX_CODE_CHARS = 200;

/** An upstream's error; null where it has no such field. */
export interface UpstreamError {
  message: string | null;
  /** Words in the vendor's terms, `code` more specific than `type`; a code may be a status. */
  type: string | null;
  code: string | number | null;
  /** The status that the error stands for, where the vendor sends it under another. */
  status?: number;
  /** Where the vendor says it in the body alone. */
  retryAfterMs?: number;
}

/**
 * Reads a dialect's error: the value of `error` in a JSON body or event, or else the whole body. Null: the body was not JSON. Never throws.
 *
 * @param header of the response; absent: the error came within a 200
 */
export type DescribeError = (error: unknown, header?: Refusal['header']) => UpstreamError;

export interface Refusal {
  status: number;
  /** First value; null when absent. */
  header(name: string): string | null;
  text: string;
  nowMs: number;
}

export interface Upstream {
  name: string;
  /** Masked in errors, since upstreams quote it. */
  apiKey: Secrets;
  describeError: DescribeError;
}

/** The error inside an upstream's error body; null when the body is not JSON. */
export function errorIn(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'error' in body ? body.error : body;
  } catch {
    return null;
  }
}

/** Maps an HTTP error status to an error of the catalogue. */
export function toRefusal(upstream: Upstream, { status, header, text, nowMs }: Refusal): SwitchyardError {
  const quoted = errorIn(text);
  const error = withoutSecrets(quoted ?? text, upstream.apiKey);
  const parsed = upstream.describeError(quoted === null ? null : error, header);
  const meant = parsed.status ?? status;
  const code = codeOf(meant, parsed);
  const reason = parsed.message ?? `it answered ${status}`;
  return new SwitchyardError(code, `${upstream.name}: ${shortened(reason, MAX_REASON_CHARACTERS)}`, {
    details: { status: meant, raw: rawOf(error), ...providerCodeOf(parsed), ...bodysRetryAfter(parsed), ...retryAfterOf(header, nowMs) },
  });
}

/** Maps an error before or during the body. */
export function toBreak(upstream: Upstream, error: unknown): SwitchyardError {
  if (error instanceof SwitchyardError) return error;
  if (error instanceof ErrorEvent) return fromErrorEvent(upstream, error.error);
  if (error instanceof SyntaxError || error instanceof z.ZodError) {
    return new SwitchyardError('router.provider_unavailable', `${upstream.name} sent an answer that can't be read`, { cause: error });
  }
  const reason = networkReason(error);
  return new SwitchyardError('router.provider_unavailable', `${upstream.name} broke off (${reason})`, { cause: error, details: { reason } });
}

const RESET = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
/** Found at once, and often over in a moment: another process of the upstream, or of a name server, may answer. */
const REFUSED = new Set(['ECONNREFUSED', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH']);

/** Maps a request without a response. */
export function toUnreachable(upstream: Upstream, error: unknown): SwitchyardError {
  if (error instanceof SwitchyardError) return error;
  const reason = networkReason(error);
  // An idle connection that the upstream closes while we send says nothing about its health.
  const connection = RESET.has(reason) ? { connection: 'reset' } : REFUSED.has(reason) ? { connection: 'refused' } : {};
  return new SwitchyardError('router.provider_unavailable', `${upstream.name} can't be reached (${reason})`, {
    cause: error,
    details: { reason, ...connection },
  });
}

/** Maps an error event inside a 200; its code is, or implies, a status. */
function fromErrorEvent(upstream: Upstream, event: unknown): SwitchyardError {
  const clean = withoutSecrets(event, upstream.apiKey);
  const parsed = upstream.describeError(clean);
  const number = parsed.status ?? Number(parsed.code);
  const status = Number.isInteger(number) && number >= 400 && number < 600 ? number : null;
  return new SwitchyardError(
    codeOf(status ?? statusInWords(parsed), parsed),
    `${upstream.name}: ${shortened(parsed.message ?? 'it sent an error', MAX_REASON_CHARACTERS)}`,
    {
      details: { ...(status === null ? {} : { status }), raw: rawOf(clean), ...providerCodeOf(parsed) },
    },
  );
}

/** Vendors' error words by the status they stand for. */
const STATUS_WORDS: readonly (readonly [status: number, words: RegExp])[] = [
  [402, /insufficient_(quota|funds|credits|balance)|billing|payment/],
  [429, /rate_?limit|too_many_requests|throttl/],
  [401, /api_key|authentication|unauthori[sz]ed/],
  [403, /permission|forbidden|access_denied|unsupported_country/],
  [404, /not_found/],
  [503, /overloaded|capacity|service_unavailable|engine_unavailable/],
  [413, /too_large/],
  [408, /timeout|timed_out|deadline_exceeded/],
  [400, /context_length|context_window|content_policy|content_filter|moderation|responsible_ai|safety/],
  [400, /invalid|unsupported|bad_request|unknown_parameter|missing_|string_above|string_too_long|unprocessable|validation/],
];

/** The code is more specific than the type; 502 when neither is known. */
function statusInWords({ code, type }: UpstreamError): number {
  for (const word of [code, type]) {
    const known = STATUS_WORDS.find(([, words]) => words.test(String(word ?? '').toLowerCase()));
    if (known !== undefined) return known[0];
  }
  return 502;
}

function codeOf(status: number, { type, code, message }: UpstreamError): ErrorCode {
  const words = `${type ?? ''} ${code ?? ''}`.toLowerCase();
  if (status === 400 || status === 413 || status === 422 || status === 403 || status === 502) {
    if (/context_length|context_window/.test(words) || (status !== 403 && /maximum context length|context window/i.test(message ?? '')))
      return 'router.context_length';
    if (/content_policy|content_filter|moderation|responsible_ai/.test(words)) return 'router.content_policy';
  }
  if (status === 429) return /insufficient_quota|billing/.test(words) ? 'router.provider_misconfigured' : 'router.provider_rate_limited';
  if (status === 413) return 'request.too_large';
  if (status === 400 || status === 422) return 'router.provider_refused';
  if (status === 503 || status === 529 || /overloaded/.test(words)) return 'router.provider_overloaded';
  if (status >= 500 || status === 408 || status === 409 || status === 425) return 'router.provider_unavailable';
  // 401, 402, 403, 404, a redirect …: our configuration doesn't match the upstream.
  return 'router.provider_misconfigured';
}

function providerCodeOf({ code, type }: UpstreamError): { providerCode?: string } {
  const value = code ?? type;
  return value === null ? {} : { providerCode: String(value).slice(0, MAX_CODE_CHARS) };
}

function bodysRetryAfter({ retryAfterMs }: UpstreamError): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** From `retry-after-ms`, or `retry-after` as seconds or date. */
function retryAfterOf(header: Refusal['header'], nowMs: number): { retryAfterMs?: number } {
  const milliseconds = Number(header('retry-after-ms') ?? Number.NaN);
  if (milliseconds >= 0) return { retryAfterMs: Math.round(milliseconds) };
  const value = header('retry-after');
  if (value === null) return {};
  const seconds = Number(value);
  if (seconds >= 0) return { retryAfterMs: Math.round(seconds * 1_000) };
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? {} : { retryAfterMs: Math.max(0, atMs - nowMs) };
}

function rawOf(error: unknown): unknown {
  const text = typeof error === 'string' ? error : JSON.stringify(error);
  return text.length > MAX_RAW_CHARS ? `${text.slice(0, MAX_RAW_CHARS)}…` : error;
}

function networkReason(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.name : 'unknown';
}
