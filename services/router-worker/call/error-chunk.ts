import type { ErrorChunk, RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import { errorCatalogue, type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import type { CompletionHead } from './fold.ts';

/** An earlier attempt of the same call. */
export interface PreviousError {
  provider: string;
  model: string;
  /** The provider's own code, or else our word for the kind of error. */
  code: string;
  /** The upstream's status, or else the one that we would answer. */
  status: number;
}

/** What a client is told to wait at most: some obey without a bound, and another provider may be free much sooner than the one that said so. */
const MAX_RETRY_AFTER_MS = 60_000;

/** What is known about a failure besides the error itself. */
export interface ErrorContext {
  /** Display name of the provider that failed; null when none was asked. */
  providerName: string | null;
  previousErrors: readonly PreviousError[];
}

/** Codes whose cause is ours to mend: a caller learns that it is our fault, and nothing of how the house is built or what its keys are worth. */
const OPERATORS_OWN = 'router.provider_misconfigured';

/** The public body of an error. Its `code` is the HTTP status. Internal faults are masked. */
export function errorBodyOf(error: unknown, { providerName, previousErrors }: ErrorContext): RouterErrorBody {
  const failure = failureOf(error);
  const { status, routerType } = errorCatalogue[failure.code];
  const previous = previousErrors.length === 0 ? {} : { previous_errors: previousErrors };
  if (routerType === 'server') {
    return { error: { code: status, message: 'Internal server error', type: routerType, param: '', metadata: { error_type: routerType, ...previous } } };
  }
  const { details } = failure;
  return {
    error: {
      code: status,
      message: failure.code === OPERATORS_OWN ? `${providerName ?? 'The provider'} can't be used: it is not set up correctly here` : failure.message,
      type: routerType,
      param: typeof details.param === 'string' ? details.param : '',
      metadata: { error_type: routerType, ...(providerName === null ? {} : { provider_name: providerName }), ...publicDetails(failure), ...previous },
    },
  };
}

function publicDetails({ code, details }: Failure): Record<string, unknown> {
  const { status } = errorCatalogue[code];
  const { raw, providerCode, retryAfterMs, excluded_by: excludedBy } = details;
  const shown: Record<string, unknown> = {};
  if (code !== OPERATORS_OWN && raw !== undefined) shown.raw = raw;
  if (code !== OPERATORS_OWN && providerCode !== undefined) shown.provider_code = providerCode;
  if (excludedBy !== undefined) shown.excluded_by = excludedBy;
  // The gateway makes the Retry-After header of it.
  if (typeof retryAfterMs === 'number' && (status === 429 || status === 503)) shown.retry_after = Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) / 1_000);
  return shown;
}

/** What a later error tells of this attempt. */
export function previousErrorOf(error: unknown, provider: string, model: string): PreviousError {
  const { code, details } = failureOf(error);
  const { status, routerType } = errorCatalogue[code];
  return {
    provider,
    model,
    code: typeof details.providerCode === 'string' && code !== OPERATORS_OWN ? details.providerCode : routerType,
    status: typeof details.status === 'number' ? details.status : status,
  };
}

/** The last chunk of a stream that broke. */
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
