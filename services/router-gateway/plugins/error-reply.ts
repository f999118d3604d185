import { maxHeaderSize } from 'node:http';
import { z } from 'zod';
import type { RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import { shortened } from '#shared/errors/shortened.ts';
import { errorCatalogue, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type BrokenRequests, TUNNEL_REQUEST } from '#shared/http-server/broken-requests.ts';
import { type ErrorReply, type ErrorRules, knownError } from '#shared/http-server/error-replies.ts';

/** A message and a `param` may quote a name of the request, which can be as long as a body. */
const MAX_MESSAGE_CHARACTERS = 2_000;
const MAX_PARAM_CHARACTERS = 200;

interface RouterErrorReply extends ErrorReply {
  body: RouterErrorBody;
}

/** The caller's fault; all other codes of the framework answer 500. */
export const routerErrors: ErrorRules = {
  replyTo,
  framework: {
    FST_ERR_CTP_BODY_TOO_LARGE: ['request.too_large', null],
    FST_ERR_CTP_INVALID_MEDIA_TYPE: ['request.unsupported_media', 'This address takes no body of this Content-Type: send JSON as application/json'],
    FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['request.invalid', null],
    FST_ERR_CTP_EMPTY_JSON_BODY: ['request.invalid', null],
    FST_ERR_CTP_INVALID_JSON_BODY: ['request.invalid', null],
    FST_ERR_BAD_URL: ['request.invalid', null],
    FST_ERR_MAX_PARAM_LENGTH: ['request.invalid', null],
  },
  brokenOff: 'The request could not be read',
  logLevel(error) {
    const { status } = errorCatalogue[error.code];
    if (status === 500) return 'error';
    return status > 500 && error.cause !== undefined ? 'warn' : null;
  },
  unknownRoute(app, request, reply) {
    const url = request.url.split('?', 1)[0] ?? '';
    const allowed = app.knownAddresses.methodsAt(url);
    if (allowed.length === 0) return new SwitchyardError('request.not_found', `There is nothing at ${url}`);
    reply.header('allow', allowed.join(', '));
    return new SwitchyardError('request.method_not_allowed', `${url} does not support ${request.method}`);
  },
};

const unreadable = (code: 'request.invalid' | 'request.timeout', message = 'The request could not be read as HTTP') =>
  replyTo(new SwitchyardError(code, message));

export const brokenRequests: BrokenRequests = {
  byCode: {
    ERR_HTTP_REQUEST_TIMEOUT: unreadable('request.timeout', 'The request was not received in time'),
    [TUNNEL_REQUEST]: unreadable('request.invalid', 'This server opens no tunnels: CONNECT is not supported'),
    HPE_HEADER_OVERFLOW: unreadable('request.invalid', `The headers of the request are larger than ${maxHeaderSize} bytes`),
  },
  otherwise: unreadable('request.invalid'),
  contentType: 'application/json',
};

/** The router's form of any error. */
export function errorReply(error: unknown): RouterErrorReply {
  return replyTo(knownError(error, routerErrors));
}

/**
 * Converts an error to the router's error body. `details.param` becomes `param`, `details.retryAfterMs` becomes `Retry-After` and
 * `metadata.retry_after`; no other detail is sent. Internal errors (500) do not reveal their message.
 */
function replyTo({ code, message, details }: SwitchyardError): RouterErrorReply {
  const { status, routerType } = errorCatalogue[code];
  const retryAfter = typeof details.retryAfterMs === 'number' ? Math.ceil(details.retryAfterMs / 1_000) : null;
  const body: RouterErrorBody = {
    error: {
      code: status,
      message: status === 500 ? 'Internal server error' : shortened(message, MAX_MESSAGE_CHARACTERS),
      type: routerType,
      param: typeof details.param === 'string' ? shortened(details.param, MAX_PARAM_CHARACTERS) : '',
      metadata: { error_type: routerType, ...(retryAfter !== null && { retry_after: retryAfter }) },
    },
  };
  const headers = { ...retryHeaders(body), ...(details.isFinal === true && NO_RETRY), ...rateHeaders(details.rateLimit) };
  return { status, headers, body };
}

const rateLimit = z.object({ limit: z.number(), remaining: z.number(), resetAtMs: z.number() });

/** Of the router's own limits only; the reset is in epoch milliseconds. */
function rateHeaders(details: unknown): Record<string, string> {
  if (details === undefined) return {};
  const { limit, remaining, resetAtMs } = rateLimit.parse(details);
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining), 'x-ratelimit-reset': String(resetAtMs) };
}

/** Clients with the openai package retry 429 and 503 otherwise. */
const NO_RETRY = { 'x-should-retry': 'false' };

/** `Retry-After` and `www-authenticate`; `x-should-retry: false` where no provider will ever fit. */
export function retryHeaders({ error }: RetryFacts): Record<string, string> {
  const headers: Record<string, string> = {};
  const retryAfter = error.metadata?.retry_after;
  if ((error.code === 429 || error.code === 503) && typeof retryAfter === 'number') headers['retry-after'] = String(Math.ceil(retryAfter));
  if (error.code === 503 && error.type === errorCatalogue['router.no_provider'].routerType) Object.assign(headers, NO_RETRY);
  if (error.code === 401) headers['www-authenticate'] = 'Bearer';
  return headers;
}

interface RetryFacts {
  error: { code: number; type: string; metadata?: Record<string, unknown> | undefined };
}
