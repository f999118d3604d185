import {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
  fastify,
  type onRequestHookHandler,
} from 'fastify';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import { markRequests } from '#shared/http-server/mark-requests.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import { traceIdOfRequest, traceRequests } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import type { Admission } from './admission.ts';
import type { CallSender } from './call-sender.ts';
import { ignoredFields } from './ignored-fields.ts';
import type { GatewayLimits } from './limits.ts';
import { indexModels } from './model-index.ts';
import { bearerAuth, readKeys } from './plugins/bearer-auth.ts';
import { installErrorReplies, respondToBrokenRequest, sendError } from './plugins/error-reply.ts';
import { type PlatformKeys, platformAuth } from './plugins/platform-auth.ts';
import { requestIdOf } from './plugins/request-id.ts';
import { closeWaitingResponses } from './plugins/waiting-responses.ts';
import { validateWithZod } from './plugins/zod-validation.ts';
import type { CallReaders } from './relay/call-readers.ts';
import { health } from './routes/health.ts';
import { modelCall } from './routes/model-call.ts';
import { listModels } from './routes/models.ts';
import { resumeGeneration } from './routes/resume-generation.ts';
import { tracesIntake } from './routes/traces-intake.ts';
import type { TraceForwarder } from './trace-forwarder.ts';

export interface AppDeps {
  routerConfig: RouterConfig;
  environment: Environment;
  houseSecret: string;
  /** Null: no platform. */
  platformKeys?: PlatformKeys | null;
  bus: Bus;
  readers: CallReaders;
  sender: CallSender;
  admission: Admission;
  log: Log;
  clock: Clock;
  deadlines: Deadlines;
  limits: GatewayLimits;
  metrics: Metrics;
  tracing?: Tracing;
  /** Absent: there is no collector. */
  traceForwarder?: TraceForwarder | null;
  /** Of an open port; absent: `listen` opens one. */
  serverFactory?: FastifyServerFactory;
}

/** All routes of the router gateway. Opens nothing. @throws `config.invalid` for a key without secret or an unknown default model */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { admission, bus, environment, limits, log, metrics, routerConfig } = deps;
  const keys = readKeys(routerConfig, environment);
  const models = indexModels(routerConfig);
  const app = fastify({
    ...(deps.serverFactory && { serverFactory: deps.serverFactory }),
    genReqId: requestIdOf,
    requestIdHeader: false,
    requestTimeout: limits.requestMs,
    // A draining gateway answers with the router's error body; the framework's own 503 would come first.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => void sendError(log, error, request, reply),
    clientErrorHandler: respondToBrokenRequest,
  });
  // So that text bodies get 415.
  app.removeContentTypeParser('text/plain');
  app.setValidatorCompiler(validateWithZod);
  installErrorReplies(app, log);
  app.decorateRequest('keyId', '');
  app.decorateRequest('admitted', null);
  closeWaitingResponses(app);
  markRequests(app);
  traceRequests(app, deps.tracing ?? noTracing);
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    const startedAtMs = performance.now();
    reply.raw.once('close', () => {
      const durationMs = performance.now() - startedAtMs;
      logRequest(log, request, reply, durationMs);
      if (!isProbe(request)) countRequest(metrics, request, reply, durationMs);
    });
    done();
  });

  const byKey = bearerAuth(keys);
  const api: FastifyPluginAsync = async (scope) => {
    scope.addHook('onRequest', whileOpen(admission));
    scope.addHook('onRequest', byKey);
    const callDeps = { ...deps, models, ignoredIn: ignoredFields(routerConfig), totalMs: routerConfig.timeouts.total_ms };
    for (const [name, surface] of surfaces) if (surface.request !== null) await scope.register(modelCall({ name, surface, form: surface.request }, callDeps));
    await scope.register(resumeGeneration({ ...deps, totalMs: routerConfig.timeouts.total_ms }));
    await scope.register(listModels(routerConfig));
  };
  const intake: FastifyPluginAsync = async (scope) => {
    scope.addHook('onRequest', whileOpen(admission));
    scope.addHook('onRequest', platformAuth(deps.platformKeys ?? null, byKey));
    await scope.register(tracesIntake({ admission, limits, forwarder: deps.traceForwarder ?? null }));
  };
  app.register(api, { prefix: '/api/v1' });
  app.register(intake, { prefix: '/api/v1' });
  app.register(health({ bus, admission }));
  return app;
}

function whileOpen(admission: Admission): onRequestHookHandler {
  return (_, reply, done) => {
    if (admission.closing) reply.header('connection', 'close');
    admission.assertOpen();
    done();
  };
}

function logRequest(log: Log, request: FastifyRequest, reply: FastifyReply, durationMs: number): void {
  const level = isProbe(request) ? 'debug' : 'info';
  if (log.writes?.(level) === false) return;
  const { id, keyId, method, routeOptions } = request;
  const status = reply.raw.statusCode;
  const ids = { request_id: id, key_id: keyId, call_id: reply.getHeader('x-generation-id'), trace_id: traceIdOfRequest(request) };
  log[level]({ method, route: routeOptions.url, status, duration_ms: Math.round(durationMs), ...ids }, 'request');
}

function isProbe({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/health/') === true;
}

/** By route pattern: unknown paths must not create series. */
function countRequest(metrics: Metrics, { method, routeOptions }: FastifyRequest, reply: FastifyReply, durationMs: number): void {
  const route = routeOptions.url ?? 'none';
  metrics.add('httpRequests', { server: 'router', method, route, status: String(reply.raw.statusCode) });
  metrics.observe('httpSeconds', { server: 'router', route }, durationMs / 1_000);
}
