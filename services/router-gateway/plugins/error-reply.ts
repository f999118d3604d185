import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import type { RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import { type ErrorCode, errorCatalogue, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { traceIdOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';

const JSON_CONTENT = 'application/json; charset=utf-8';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies HTTPMethods[];

/** The caller's fault; all other codes answer 500. */
const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'request.too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'request.unsupported_media',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request.invalid',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request.invalid',
  FST_ERR_CTP_INVALID_JSON_BODY: 'request.invalid',
  FST_ERR_BAD_URL: 'request.invalid',
  FST_ERR_MAX_PARAM_LENGTH: 'request.invalid',
};

interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: RouterErrorBody;
}

/**
 * Converts an error to the router's error body. `details.param` becomes `param`, `details.retryAfterMs` becomes `Retry-After` and
 * `metadata.retry_after`; no other detail is sent. Internal errors (500) do not reveal their message.
 */
export function errorReply(error: unknown): ErrorReply {
  const { code, message, details } = knownError(error);
  const { status, routerType } = errorCatalogue[code];
  const retryAfter = typeof details.retryAfterMs === 'number' ? Math.ceil(details.retryAfterMs / 1_000) : null;
  const body: RouterErrorBody = {
    error: {
      code: status,
      message: status === 500 ? 'Internal server error' : message,
      type: routerType,
      param: typeof details.param === 'string' ? details.param : '',
      metadata: { error_type: routerType, ...(retryAfter !== null && { retry_after: retryAfter }) },
    },
  };
  return { status, headers: retryHeaders(body), body };
}

/** A refusal that is serialised once: it must stay cheap under overload. */
export function preparedRefusal(error: SwitchyardError): (reply: FastifyReply) => void {
  const { status, headers, body } = errorReply(error);
  const all = { ...headers, 'content-type': JSON_CONTENT };
  const text = JSON.stringify(body);
  return (reply) => {
    reply.code(status).headers(all).send(text);
  };
}

/** `Retry-After` and `www-authenticate`; `x-should-retry: false` where no provider will ever fit. */
export function retryHeaders({ error }: RetryFacts): Record<string, string> {
  const headers: Record<string, string> = {};
  const retryAfter = error.metadata?.retry_after;
  if ((error.code === 429 || error.code === 503) && typeof retryAfter === 'number') headers['retry-after'] = String(Math.ceil(retryAfter));
  if (error.code === 503 && error.type === errorCatalogue['router.no_provider'].routerType) headers['x-should-retry'] = 'false';
  if (error.code === 401) headers['www-authenticate'] = 'Bearer';
  return headers;
}

interface RetryFacts {
  error: { code: number; type: string; metadata?: Record<string, unknown> | undefined };
}

/** Errors, unknown routes and wrong methods get the router's error body. */
export function installErrorReplies(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error, request, reply) => void sendError(log, error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const url = request.url.split('?', 1)[0] ?? '';
    const allowed = METHODS.filter((method) => app.hasRoute({ method, url }));
    if (allowed.length === 0) throw new SwitchyardError('request.not_found', `There is nothing at ${url}`);
    reply.header('allow', allowed.join(', '));
    throw new SwitchyardError('request.method_not_allowed', `${url} does not support ${request.method}`);
  });
}

/** Also used for errors before routing. */
export function sendError(log: Log, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = errorReply(error);
  const facts = { err: error, request_id: request.id, trace_id: traceIdOfRequest(request), method: request.method };
  if (status === 500) log.error(facts, 'a request failed');
  else if (status > 500 && error instanceof Error && error.cause !== undefined) log.warn(facts, 'a request could not be served');
  return reply.code(status).headers(headers).send(body);
}

/** For unparsable HTTP; writes to the bare socket. */
export function respondToBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  // After earlier responses one may still be in flight, and a second would be written into it.
  if (socket.writable && socket.bytesWritten === 0) {
    const code = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'router.timeout' : 'request.invalid';
    const { status, body } = errorReply(new SwitchyardError(code, 'The request could not be read as HTTP'));
    const text = JSON.stringify(body);
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`;
    socket.write(`${head}\r\nConnection: close\r\n\r\n${text}`);
  }
  socket.destroySoon();
}

function knownError(error: unknown): { code: ErrorCode; message: string; details: Record<string, unknown> } {
  if (error instanceof SwitchyardError) return error;
  if (!(error instanceof Error)) return { code: 'internal', message: '', details: {} };
  const code = 'code' in error && typeof error.code === 'string' ? FRAMEWORK_CODES[error.code] : undefined;
  if (code !== undefined) return { code, message: error.message, details: {} };
  // Fastify's mark of a body that broke off: the client has disconnected.
  if ('statusCode' in error && error.statusCode === 400) return { code: 'request.invalid', message: 'The request could not be read', details: {} };
  return { code: 'internal', message: '', details: {} };
}
