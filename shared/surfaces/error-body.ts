import type { RouterErrorBody } from '../contracts/router/chat-completion.ts';
import { type ErrorCode, errorCatalogue, type Failure, failureOf } from '../errors/switchyard-error.ts';

/** An entry of `previous_errors`. */
export interface PreviousError {
  provider: string;
  model: string;
  /** The provider's, or else our error type. */
  code: string;
  /** The upstream's, or else that of our error. */
  status: number;
}

/** Some clients wait as long as `retry_after` says, while another provider may be free sooner. */
const MAX_RETRY_AFTER_MS = 60_000;

export interface ErrorContext {
  /** Display name; null when no provider was asked. */
  providerName: string | null;
  previousErrors: readonly PreviousError[];
  /** Without fallback the provider's message is shown, whatever it is about. */
  isWithoutFallback?: boolean;
}

/**
 * The provider refuses the operator's credential, account or model name. The status stays 502, since 401 or 402 would blame the caller's key; the provider's
 * words are in `metadata.raw`.
 */
const MISCONFIGURED = 'router.provider_misconfigured';

const PROVIDER_ERRORS: ReadonlySet<ErrorCode> = new Set([
  MISCONFIGURED,
  'router.provider_refused',
  'router.context_length',
  'router.content_policy',
  'router.provider_rate_limited',
  'router.provider_overloaded',
  'router.provider_unavailable',
]);

/** Of texts that a plugin, or a provider, does not accept (router-api, "Errors"). */
const MODERATION_DETAILS = ['reasons', 'flagged_input', 'provider_name', 'model_slug'] as const;

/** The public body of an error. `code` is the HTTP status. Internal errors are masked. */
export function errorBodyOf(error: unknown, { providerName, previousErrors, isWithoutFallback = false }: ErrorContext): RouterErrorBody {
  const failure = failureOf(error);
  const { status, routerType } = errorCatalogue[failure.code];
  const previous = previousErrors.length === 0 ? {} : { previous_errors: previousErrors };
  if (routerType === 'server') {
    return { error: { code: status, message: 'Internal server error', type: routerType, param: '', metadata: { error_type: routerType, ...previous } } };
  }
  const { details } = failure;
  const isMasked = failure.code === MISCONFIGURED && !isWithoutFallback;
  return {
    error: {
      code: status,
      message: isMasked ? `${providerName ?? 'The provider'} can't be used: its endpoint or credential is misconfigured on this router` : failure.message,
      type: routerType,
      param: typeof details.param === 'string' ? details.param : '',
      metadata: { error_type: routerType, ...(providerName === null ? {} : providerDetails(failure, providerName)), ...publicDetails(failure), ...previous },
    },
  };
}

/** `raw` is the provider's error body without our credential, or else what was observed. */
function providerDetails({ code, message, details }: Failure, providerName: string): Record<string, unknown> {
  const { raw, reason, providerCode, status } = details;
  const shown: Record<string, unknown> = { provider_name: providerName };
  if (raw !== undefined) shown.raw = raw;
  else if (PROVIDER_ERRORS.has(code)) shown.raw = typeof reason === 'string' ? reason : message;
  if (providerCode !== undefined) shown.provider_code = providerCode;
  if (typeof status === 'number') shown.provider_status = status;
  return shown;
}

function publicDetails({ code, details }: Failure): Record<string, unknown> {
  const { status } = errorCatalogue[code];
  const { retryAfterMs, excluded_by: excludedBy } = details;
  const shown: Record<string, unknown> = {};
  if (excludedBy !== undefined) shown.excluded_by = excludedBy;
  for (const name of MODERATION_DETAILS) if (details[name] !== undefined) shown[name] = details[name];
  // The gateway's Retry-After header.
  if (typeof retryAfterMs === 'number' && (status === 429 || status === 503)) shown.retry_after = Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) / 1_000);
  return shown;
}

export function previousErrorOf(error: unknown, provider: string, model: string): PreviousError {
  const { code, details } = failureOf(error);
  const { status, routerType } = errorCatalogue[code];
  return {
    provider,
    model,
    code: typeof details.providerCode === 'string' ? details.providerCode : routerType,
    status: typeof details.status === 'number' ? details.status : status,
  };
}
