import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { spanReferenceIn, traceContextOf, traceIdIn } from './trace-context.ts';
import { noTracing, type Span, spanThatHandsOn, type Tracing } from './tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for what is not traced, such as a probe. */
    span: Span | null;
  }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** What long-polls answer when their time is over. */
const NOTHING_NEW = 504;

/**
 * One span per request, from its head to the end of its answer, however long that streams. It goes on with the caller's trace. Its name is
 * the route's template: what stands in a path or a query may be anybody's secret. To be installed before other hooks.
 */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.decorateRequest('span', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { routeOptions, headers } = request;
    const { url: route } = routeOptions;
    if (route === undefined || isTraced(route)) {
      const parent = spanReferenceIn(headers.traceparent) === null ? null : String(headers.traceparent);
      request.span = tracing === noTracing ? spanThatHandsOn(parent) : recorded(tracing, parent, request, reply);
    }
    done();
  });
}

/** Probes are too many to be news, and spans of the taking in of spans would never come to an end. */
function isTraced(route: string): boolean {
  return route !== '/health' && !route.startsWith('/health/') && !route.includes('/otel/');
}

function recorded(tracing: Tracing, parent: string | null, request: FastifyRequest, reply: FastifyReply): Span {
  const { method, routeOptions, raw } = request;
  const { url: route } = routeOptions;
  const known = METHODS.has(method) ? method : '_OTHER';
  const span = tracing.begin(route === undefined ? known : `${known} ${route}`, {
    kind: 'server',
    parent,
    attributes: { 'http.request.method': known, 'http.route': route, 'url.scheme': 'http', 'network.protocol.version': raw.httpVersion },
  });
  reply.raw.once('close', () => endOf(span, reply));
  return span;
}

/** The context for what is done for a request: of its own span, else its caller's, else a new one. */
export function traceparentOfRequest(request: FastifyRequest): string {
  return request.span?.traceparent ?? traceContextOf(request.headers.traceparent).traceparent;
}

/** The context of a request's own span, or of its caller's when it has none. Not checked: `traceContextOf` is. */
export function contextOfRequest(request: FastifyRequest): unknown {
  return request.span?.traceparent ?? request.headers.traceparent;
}

/** The trace that log lines of a request name; null for one that has none, such as a probe. */
export function traceIdOfRequest(request: FastifyRequest): string | null {
  const context = contextOfRequest(request);
  return typeof context === 'string' ? traceIdIn(context) : null;
}

/** The caller's mistakes are not errors of ours, and neither is a long-poll that found nothing. */
function endOf(span: Span, { raw }: FastifyReply): void {
  span.set({ 'http.response.status_code': raw.headersSent ? raw.statusCode : undefined, 'switchyard.cancelled': raw.writableFinished ? undefined : true });
  span.end(raw.statusCode >= 500 && raw.statusCode !== NOTHING_NEW ? String(raw.statusCode) : null);
}
