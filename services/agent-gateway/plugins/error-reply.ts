import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { errorCatalogue, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import { traceIdOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** When the same request may pass. Overload and restarts last seconds, and clients add their own jitter. */
export const RETRY_AFTER_SECONDS = 1;

/**
 * Turns whatever a route threw into `{error, code, …}`. What the catalogue does not know is a fault of ours: 500, with its text in the
 * log and not in the reply.
 *
 * @param isKnownSession asked before a request of a session is called invalid: that there is no such session comes first. Null when it
 * can't be told.
 */
export function errorReply({ log, isKnownSession }: { log: Log; isKnownSession(sessionId: string): Promise<boolean | null> }) {
  return async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    let known = knownError(error);
    const sessionId = sessionIdOf(request);
    if ((known.code === 'request.invalid' || known.code === 'request.unsupported_media') && sessionId !== null && (await isKnownSession(sessionId)) === false)
      known = noSuchSession();
    return sendError(known, { request, reply, log });
  };
}

export function sendError(error: SwitchyardError, { request, reply, log }: { request: FastifyRequest; reply: FastifyReply; log: Log }): FastifyReply {
  const { status, agentCode } = errorCatalogue[error.code];
  const isOurs = agentCode === 'internal';
  const ids = { request_id: request.id, trace_id: traceIdOfRequest(request) };
  if (isOurs) log.error({ err: error.cause ?? error, ...ids }, 'a request failed');
  else if (status >= 500 && !isNormal(error)) log.warn({ err: error, ...ids }, 'a request could not be served');
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  if (status === 429 || status === 503) reply.header('retry-after', String(RETRY_AFTER_SECONDS));
  const { path, schema_path: schemaPath } = error.details;
  return reply.code(status).send({
    error: isOurs ? 'internal error' : error.message,
    code: agentCode,
    path: typeof path === 'string' && !isOurs ? path : undefined,
    schema_path: typeof schemaPath === 'string' && !isOurs ? schemaPath : undefined,
  });
}

/**
 * The contract's answer to a poll that named a time in which nothing came: 504 to its client, and nothing for whoever runs the server. What
 * is refused because there is too much of it is counted (`switchyard_http_requests_total`): a line for each would be more work than the rest.
 */
function isNormal({ code }: SwitchyardError): boolean {
  return code === 'session.nothing_new' || code === 'service.overloaded';
}

export function noSuchSession(): SwitchyardError {
  return new SwitchyardError('session.not_found', 'there is no such session');
}

/**
 * @param path JSON Pointer to the field; the message names it too, for people
 * @param message the rest of a sentence whose subject is the field
 */
export function invalidField(path: string, message: string): SwitchyardError {
  const field = path.slice(1).replaceAll('/', '.');
  return new SwitchyardError('request.invalid', `${field === '' ? 'the body' : field} ${message}`, { details: { path } });
}

function knownError(error: unknown): SwitchyardError {
  if (error instanceof SwitchyardError) return error;
  if (isFastifyError(error)) {
    if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new SwitchyardError('request.too_large', 'the body is larger than 1 MiB', { cause: error });
    if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new SwitchyardError('request.invalid', 'send the body as application/json', { cause: error });
    if (error.statusCode === 400) return new SwitchyardError('request.invalid', 'the body is not valid JSON', { cause: error });
  }
  // So the framework marks a body that broke off: its sender is gone, and nothing is wrong with us.
  if (isBrokenOff(error)) return new SwitchyardError('request.invalid', 'the body could not be read', { cause: error });
  if (isTransientError(error)) return new SwitchyardError('service.not_ready', 'the server can not reach its stores right now', { cause: error });
  return new SwitchyardError('internal', 'internal error', { cause: error });
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('FST_');
}

function isBrokenOff(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && error.statusCode === 400;
}

function sessionIdOf({ params }: FastifyRequest): string | null {
  const isObject = typeof params === 'object' && params !== null;
  return isObject && 'session_id' in params && typeof params.session_id === 'string' ? params.session_id : null;
}
