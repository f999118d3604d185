import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { errorCatalogue, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import { traceIdOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Overload and restarts last seconds; clients add jitter. */
export const RETRY_AFTER_SECONDS = 1;

/**
 * Turns a thrown error into `{error, code, …}`. Outside the catalogue: 500, its text logged, not sent.
 * @param isKnownSession called before a request is reported invalid: an unknown session takes precedence. Null: unknown right now
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

/** A poll's timeout (504) is no fault. Overload is counted (`switchyard_http_requests_total`): a log line would cost more than the refusal. */
function isNormal({ code }: SwitchyardError): boolean {
  return code === 'session.nothing_new' || code === 'service.overloaded';
}

export function noSuchSession(): SwitchyardError {
  return new SwitchyardError('session.not_found', 'there is no such session');
}

/**
 * @param path JSON Pointer
 * @param message a sentence without its subject: the field
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
  // A body that broke off, as Fastify marks it: the client has disconnected.
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
