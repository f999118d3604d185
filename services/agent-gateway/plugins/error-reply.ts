import { shortened } from '#shared/errors/shortened.ts';
import { errorCatalogue, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type BrokenRequests, TUNNEL_REQUEST } from '#shared/http-server/broken-requests.ts';
import type { ErrorReply, ErrorRules } from '#shared/http-server/error-replies.ts';
import { inexactNumber } from '#shared/inexact-number.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';

/** Overload and restarts last seconds; clients add jitter. */
const RETRY_AFTER_SECONDS = 1;

/** A message and a path may quote a name of the request, which can be as long as a body. */
const MAX_MESSAGE_CHARACTERS = 2_000;
const MAX_PATH_CHARACTERS = 1_000;

const NOT_JSON = ['request.invalid', 'the body is not valid JSON'] as const;

/** Errors as `{error, code, …}`. */
export const agentErrors: ErrorRules = {
  replyTo,
  framework: {
    FST_ERR_CTP_BODY_TOO_LARGE: ['request.too_large', 'the body is larger than 1 MiB'],
    FST_ERR_CTP_INVALID_MEDIA_TYPE: ['request.unsupported_media', 'this address takes no body of this Content-Type: send JSON as application/json'],
    FST_ERR_CTP_INVALID_CONTENT_LENGTH: NOT_JSON,
    FST_ERR_CTP_EMPTY_JSON_BODY: NOT_JSON,
    FST_ERR_CTP_INVALID_JSON_BODY: NOT_JSON,
  },
  brokenOff: 'the body could not be read',
  translate: (error) =>
    isTransientError(error) ? new SwitchyardError('service.not_ready', 'the server can not reach its stores right now', { cause: error }) : null,
  logLevel(error) {
    if (isInternal(error)) return 'error';
    return errorCatalogue[error.code].status >= 500 && !isNormal(error) ? 'warn' : null;
  },
  unknownRoute(app, request, reply) {
    const allowed = app.knownAddresses.methodsAt(request.url).join(', ');
    if (allowed === '') return new SwitchyardError('request.not_found', 'there is nothing at this address');
    reply.header('allow', allowed);
    return new SwitchyardError('request.method_not_allowed', `this address takes ${allowed}, not ${request.method}`);
  },
};

const REFUSED = { code: 'validation_failed' };

export const brokenRequests: BrokenRequests = {
  byCode: {
    ERR_HTTP_REQUEST_TIMEOUT: { status: 408, body: { error: 'the request was not received in time', code: 'timeout' } },
    [TUNNEL_REQUEST]: { status: 400, body: { error: 'this server opens no tunnels: CONNECT is not supported', ...REFUSED } },
    HPE_HEADER_OVERFLOW: { status: 431, body: { error: 'the headers are too large', ...REFUSED } },
  },
  otherwise: { status: 400, body: { error: 'the request could not be read as HTTP', ...REFUSED } },
  contentType: 'application/json; charset=utf-8',
};

export function replyTo(error: SwitchyardError): ErrorReply {
  const { status, agentCode } = errorCatalogue[error.code];
  const headers: Record<string, string> = {};
  // A signature is no scheme that has a name.
  if (status === 401 && error.code !== 'webhook.unsigned') headers['www-authenticate'] = 'Bearer';
  const { retryAfterMs } = error.details;
  if (status === 429 || status === 503)
    headers['retry-after'] = String(typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1_000) : RETRY_AFTER_SECONDS);
  if (isInternal(error)) return { status, headers, body: { error: 'internal error', code: agentCode } };
  const { path, schema_path: schemaPath } = error.details;
  const body = {
    error: shortened(error.message, MAX_MESSAGE_CHARACTERS),
    code: agentCode,
    ...(typeof path === 'string' && { path: shortened(path, MAX_PATH_CHARACTERS) }),
    ...(typeof schemaPath === 'string' && { schema_path: schemaPath }),
  };
  return { status, headers, body };
}

function isInternal({ code }: SwitchyardError): boolean {
  return errorCatalogue[code].agentCode === 'internal';
}

/** A poll's timeout (504) is no fault. Overload is counted (`switchyard_http_requests_total`): a log line would cost more than the refusal. */
function isNormal({ code }: SwitchyardError): boolean {
  return code === 'session.nothing_new' || code === 'service.overloaded';
}

export function noSuchSession(): SwitchyardError {
  return new SwitchyardError('session.not_found', 'there is no such session');
}

/** The same for an unknown name and a routine without a webhook. */
export function noSuchWebhook(): SwitchyardError {
  return new SwitchyardError('request.not_found', 'there is no webhook with this name');
}

/** Null: all integers of the body are kept as they are, and no number of it exceeds all doubles. It must be valid JSON. */
export function changedNumber(json: string): SwitchyardError | null {
  const found = inexactNumber(json);
  if (found === null) return null;
  const { number, path } = found;
  return new SwitchyardError('request.invalid', `the number ${number} cannot be kept exactly, as it is beyond ±2^53: send it as a string`, {
    details: { path },
  });
}

/**
 * @param path JSON Pointer
 * @param message a sentence without its subject: the field
 */
export function invalidField(path: string, message: string): SwitchyardError {
  const field = path.slice(1).replaceAll('/', '.');
  return new SwitchyardError('request.invalid', `${field === '' ? 'the body' : field} ${message}`, { details: { path } });
}
