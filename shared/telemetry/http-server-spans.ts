import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { matchedRoute } from '../http-server/matched-route.ts';
import { spanReferenceIn, traceContextOf, traceIdIn } from './trace-context.ts';
import { noTracing, type Span, type Tracing, unrecordedSpan } from './tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null when not traced, such as a probe. */
    span: Span | null;
  }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** A long-poll without an event. */
const NOTHING_NEW = 504;

/**
 * One span per request, from its head to the end of its response, streams included. Named after the route template, since paths and queries may
 * contain secrets. Call it before adding other hooks.
 */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.decorateRequest('span', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { headers } = request;
    const { url: route } = matchedRoute(request);
    if (route === undefined || isTraced(route)) {
      const parent = spanReferenceIn(headers.traceparent) === null ? null : String(headers.traceparent);
      request.span = tracing === noTracing ? unrecordedSpan(parent) : recorded(tracing, parent, request, reply);
    }
    done();
  });
}

/** Probes are too frequent, tracing the ingestion of spans would never end, and a page that shows traces would show itself. */
function isTraced(route: string): boolean {
  return route !== '/health' && !route.startsWith('/health/') && !route.includes('/otel/') && !isOfTraces(route);
}

function isOfTraces(route: string): boolean {
  return route.endsWith('/traces') || route.endsWith('/traces/:trace_id');
}

function recorded(tracing: Tracing, parent: string | null, request: FastifyRequest, reply: FastifyReply): Span {
  const { method, raw } = request;
  const { url: route } = matchedRoute(request);
  const known = METHODS.has(method) ? method : '_OTHER';
  const span = tracing.begin(route === undefined ? known : `${known} ${route}`, {
    kind: 'server',
    parent,
    attributes: { 'http.request.method': known, 'http.route': route, 'url.scheme': 'http', 'network.protocol.version': raw.httpVersion },
  });
  reply.raw.once('close', () => endOf(span, reply));
  return span;
}

/** The context for a request's work: of its own span, else the caller's, else a new one. */
export function traceparentOfRequest(request: FastifyRequest): string {
  return request.span?.traceparent ?? traceContextOf(request.headers.traceparent).traceparent;
}

/** The context of the request's own span, else the caller's, not validated (`traceContextOf` does that). */
export function contextOfRequest(request: FastifyRequest): unknown {
  return request.span?.traceparent ?? request.headers.traceparent;
}

/** Null without a trace, such as for a probe. */
export function traceIdOfRequest(request: FastifyRequest): string | null {
  const context = contextOfRequest(request);
  return typeof context === 'string' ? traceIdIn(context) : null;
}

/** Only 5xx are errors, and a long-poll without an event is none. */
function endOf(span: Span, { raw }: FastifyReply): void {
  span.set({ 'http.response.status_code': raw.headersSent ? raw.statusCode : undefined, 'switchyard.cancelled': raw.writableFinished ? undefined : true });
  span.end(raw.statusCode >= 500 && raw.statusCode !== NOTHING_NEW ? String(raw.statusCode) : null);
}
