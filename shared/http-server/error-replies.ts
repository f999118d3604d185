import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, SwitchyardError } from '../errors/switchyard-error.ts';
import { traceIdOfRequest } from '../telemetry/http-server-spans.ts';
import type { Log } from '../telemetry/log.ts';
import { bodyIsAnnounced } from './json-bodies.ts';
import { lingerOnClose } from './linger-on-close.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What it was answered with; null: no error, or none of this server's own. */
    failure: SwitchyardError | null;
  }
}

export interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: object;
}

/** How a server words its errors. */
export interface ErrorRules {
  /** The public form of an error; internal ones must not reveal their message. */
  replyTo(error: SwitchyardError): ErrorReply;
  /** By the code of Fastify's errors, `FST_…`; message null: Fastify's own. */
  framework: Readonly<Record<string, readonly [ErrorCode, message: string | null]>>;
  /** Of a body that broke off: its client has disconnected. */
  brokenOff: string;
  /** An error from elsewhere, such as a driver; absent or null: internal. */
  translate?(error: unknown): SwitchyardError | null;
  /** Null: not logged. */
  logLevel(error: SwitchyardError): 'error' | 'warn' | null;
  /** For an address without a route. */
  unknownRoute(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): SwitchyardError;
}

export interface ErrorSink {
  errors: ErrorRules;
  log: Log;
}

/** Errors and unknown routes get the server's form. @param precedence an error that goes first, such as of an unknown session; null: none */
export function installErrorReplies(
  app: FastifyInstance,
  sink: ErrorSink,
  precedence?: (error: SwitchyardError, request: FastifyRequest) => Promise<SwitchyardError | null> | null,
): void {
  app.setErrorHandler((error, request, reply) => {
    const checked = precedence?.(knownError(error, sink.errors), request) ?? null;
    if (checked === null) return sendError(error, request, reply, sink);
    return checked.then((first) => sendError(first ?? error, request, reply, sink));
  });
  // Also so that the hooks of the app run for such addresses.
  app.setNotFoundHandler((request, reply) => {
    throw sink.errors.unknownRoute(app, request, reply);
  });
}

/**
 * Refuses requests without a route before their bodies are read: these would be held, and parsed, though no route takes them and nothing bounds them. Install it
 * behind the checks that go first.
 */
export function refuseUnknownRoutes(app: FastifyInstance, errors: Pick<ErrorRules, 'unknownRoute'>): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) done(errors.unknownRoute(app, request, reply));
    else done();
  });
}

/** Also for errors before routing. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, { errors, log }: ErrorSink): FastifyReply {
  const known = knownError(error, errors);
  request.failure = known;
  lingerBehind(request);
  const level = errors.logLevel(known);
  if (level !== null) {
    const facts = { err: error, request_id: request.id, trace_id: traceIdOfRequest(request), method: request.method };
    log[level](facts, level === 'error' ? 'a request failed' : 'a request could not be served');
  }
  const { status, headers, body } = errors.replyTo(known);
  return reply.code(status).headers(headers).send(body);
}

/** A refusal that is serialised once: it must stay cheap under overload. */
export function preparedRefusal(error: SwitchyardError, replyTo: (error: SwitchyardError) => ErrorReply): (reply: FastifyReply) => void {
  const { status, headers, body } = replyTo(error);
  const all = { ...headers, 'content-type': 'application/json; charset=utf-8' };
  const text = JSON.stringify(body);
  return (reply) => {
    reply.request.failure = error;
    lingerBehind(reply.request);
    reply.code(status).headers(all).send(text);
  };
}

/** A refusal may be sent, and its connection closed, before the request's body has arrived. */
function lingerBehind({ raw }: FastifyRequest): void {
  if (!raw.complete && bodyIsAnnounced(raw.headers)) lingerOnClose(raw);
}

/** Outside the catalogue: internal, with the error as its cause. */
export function knownError(error: unknown, { framework, brokenOff, translate }: ErrorRules): SwitchyardError {
  if (error instanceof SwitchyardError) return error;
  const options = { cause: error };
  const [code, message = null] = framework[codeOf(error)] ?? [];
  if (code !== undefined) return new SwitchyardError(code, message ?? messageOf(error), options);
  // Fastify's mark of a body that broke off.
  if (error instanceof Error && 'statusCode' in error && error.statusCode === 400) return new SwitchyardError('request.invalid', brokenOff, options);
  return translate?.(error) ?? new SwitchyardError('internal', 'internal error', options);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}
