import type { ErrorChunk, RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import { type ErrorCode, errorCatalogue, type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import type { CompletionHead } from './accumulate.ts';

/** An earlier attempt of the same call, as `previous_errors` lists it. */
export interface PreviousError {
  provider: string;
  model: string;
  /** The provider's own code, or else our error type. */
  code: string;
  /** The upstream's status, or else that of our error. */
  status: number;
}

/** Bound of `retry_after`: some clients wait any time given, and another provider may be free much sooner. */
const MAX_RETRY_AFTER_MS = 60_000;

/** What the public error shows besides the failure itself. */
export interface ErrorContext {
  /** Display name of the provider that failed; null when none was asked. */
  providerName: string | null;
  previousErrors: readonly PreviousError[];
  /** The request allows no fallback: the provider's message is shown unmasked. */
  isWithoutFallback?: boolean;
}

/**
 * The provider refuses the operator's credential, account or model name. The status stays 502, since 401 or 402 would blame the caller's own key. The message
 * is masked; the provider's is in `metadata.raw`.
 */
const OPERATORS_FAULT = 'router.provider_misconfigured';

/** Errors of an attempt at a provider. */
const PROVIDER_ERRORS: ReadonlySet<ErrorCode> = new Set([
  OPERATORS_FAULT,
  'router.provider_refused',
  'router.context_length',
  'router.content_policy',
  'router.provider_rate_limited',
  'router.provider_overloaded',
  'router.provider_unavailable',
]);

/** The public body of an error. Its `code` is the HTTP status. Internal errors are masked. */
export function errorBodyOf(error: unknown, { providerName, previousErrors, isWithoutFallback = false }: ErrorContext): RouterErrorBody {
  const failure = failureOf(error);
  const { status, routerType } = errorCatalogue[failure.code];
  const previous = previousErrors.length === 0 ? {} : { previous_errors: previousErrors };
  if (routerType === 'server') {
    return { error: { code: status, message: 'Internal server error', type: routerType, param: '', metadata: { error_type: routerType, ...previous } } };
  }
  const { details } = failure;
  const isMasked = failure.code === OPERATORS_FAULT && !isWithoutFallback;
  return {
    error: {
      code: status,
      message: isMasked ? `${providerName ?? 'The provider'} can't be used: it is not set up correctly here` : failure.message,
      type: routerType,
      param: typeof details.param === 'string' ? details.param : '',
      metadata: { error_type: routerType, ...(providerName === null ? {} : providerDetails(failure, providerName)), ...publicDetails(failure), ...previous },
    },
  };
}

/** `raw` is the provider's error body without our credential; without one, what was observed instead. */
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
  // The gateway copies it into the Retry-After header.
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

/** The last chunk of a stream that failed. */
export function errorChunkOf({ error }: RouterErrorBody, { id, created, model, provider }: CompletionHead): ErrorChunk {
  const metadata = { error_type: error.type, ...error.metadata };
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    provider,
    error: { code: error.code, message: error.message, metadata },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  };
}
