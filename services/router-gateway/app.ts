import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerFactory, onRequestHookHandler } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Living } from '#shared/config/living.ts';
import { Reservations } from '#shared/credit/reservations.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import { refusalReasonOf } from '#shared/errors/refusal-reason.ts';
import { pageFiles } from '#shared/http-server/built-pages.ts';
import { refuseUnknownRoutes } from '#shared/http-server/error-replies.ts';
import { localTraces } from '#shared/http-server/local-traces.ts';
import { matchedRoute } from '#shared/http-server/matched-route.ts';
import { addRoutes, openApp } from '#shared/http-server/open-app.ts';
import type { KeyDirectory } from '#shared/keys/caller-key.ts';
import { RateLimits } from '#shared/rates/rate-limits.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import { traceIdOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { account, keyApproval, keyExchange } from './account/account.ts';
import { type AccountLimits, accountLimits } from './account/limits.ts';
import type { Admission } from './admission.ts';
import type { CallSender } from './call-sender.ts';
import type { GatewaySetup } from './gateway-setup.ts';
import type { GatewayLimits } from './limits.ts';
import { notMeasured } from './models/measured.ts';
import { SharedHealth } from './models/shared-health.ts';
import { bearerAuth } from './plugins/bearer-auth.ts';
import { crossOrigin } from './plugins/cross-origin.ts';
import { keyScopes } from './plugins/key-scopes.ts';
import { type PlatformKeys, platformAuth, platformOnly } from './plugins/platform-auth.ts';
import { PublicAdmission } from './public-admission.ts';
import type { CallReaders } from './relay/call-readers.ts';
import { DetachedCalls } from './relay/detached-calls.ts';
import { consolePage } from './routes/console-page.ts';
import { health } from './routes/health.ts';
import { modelCall } from './routes/model-call.ts';
import { listModels } from './routes/models.ts';
import { platform } from './routes/platform/platform.ts';
import { publishedApi } from './routes/published-api.ts';
import { resumeGeneration } from './routes/resume-generation.ts';
import { tracesIntake } from './routes/traces-intake.ts';
import { routerRules } from './rules.ts';
import type { TraceForwarder } from './trace-forwarder.ts';

export interface AppDeps {
  setup: Living<GatewaySetup>;
  keys: KeyDirectory;
  houseSecret: string;
  /** Null: no platform. */
  platformKeys?: PlatformKeys | null;
  bus: Bus;
  /** Null: only the keys of the file are known. */
  database: Database | null;
  /** Null: nothing is counted for all gateways together. */
  cache: Cache | null;
  readers: CallReaders;
  sender: CallSender;
  admission: Admission;
  log: Log;
  clock: Clock;
  deadlines: Deadlines;
  limits: GatewayLimits;
  /** Default: those of production. */
  accountLimits?: AccountLimits;
  metrics: Metrics;
  tracing?: Tracing;
  /** Absent: there is no collector. */
  traceForwarder?: TraceForwarder | null;
  /** Of an open port; absent: `listen` opens one. */
  serverFactory?: FastifyServerFactory;
}

/** The contract's, and that of clients that are set up with the address of a server. */
const PREFIXES = ['/api/v1', '/v1'];

/** All routes of the router gateway. Opens nothing. */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { admission, bus, clock, limits, log, metrics, serverFactory, setup, tracing = noTracing } = deps;
  const byKey = bearerAuth(deps.keys, clock);
  const byPlatform = platformAuth(deps.platformKeys ?? null, byKey);
  const asPlatform = platformAuth(deps.platformKeys ?? null, platformOnly);
  const open = whileOpen(admission);

  const onEnd = (request: FastifyRequest, reply: FastifyReply, durationMs: number) => {
    const reason = request.failure === null ? null : refusalReasonOf(request.failure);
    if (reason !== null) metrics.add('refusals', { reason });
    logRequest(log, request, reply, durationMs);
  };
  const app = openApp(routerRules, { log, metrics, tracing, requestMs: limits.requestMs, ...(serverFactory && { serverFactory }), onEnd });
  // Of the app, since a preflight has no route.
  app.addHook('onRequest', crossOrigin(setup));
  refuseUnknownRoutes(app, routerRules.errors);
  app.decorateRequest('keyId', '');
  app.decorateRequest('callerKey', null);
  app.decorateRequest('admitted', null);
  const reservations = deps.database === null ? null : new Reservations({ database: deps.database, log, metrics, clock });
  const measured = deps.cache === null ? notMeasured : new SharedHealth({ cache: deps.cache, clock });
  const rates = new RateLimits({ cache: deps.cache, clock, log, metrics });
  const detached = new DetachedCalls({ readers: deps.readers, deadlines: deps.deadlines, clock, limits });
  app.addHook('onClose', async () => {
    detached.stop();
    rates.stop();
    await reservations?.stop();
  });
  const callDeps = { ...deps, reservations, rates, detached };
  const calls = [...surfaces].flatMap(([name, surface]) => {
    const form = surface.request;
    return form === null ? [] : [{ form, route: modelCall({ name, surface, form }, callDeps) }];
  });
  const accountDeps = { ...deps, limits: deps.accountLimits ?? accountLimits };
  const management = account(accountDeps);
  const publicDeps = { ...accountDeps, admission: new PublicAdmission(limits) };
  const exchange = keyExchange(publicDeps);
  const traces = tracesIntake({ admission, limits, forwarder: deps.traceForwarder ?? null });
  const callChecks = [open, byKey, keyScopes.modelsOnly];
  const elsewhere = calls.flatMap(({ form, route }) => (form.otherPrefixes ?? []).map((prefix) => ({ prefix, checks: callChecks, routes: [route] })));
  const published = PREFIXES.flatMap((prefix) => [
    { prefix, checks: callChecks, routes: [...calls.map(({ route }) => route), resumeGeneration(deps)] },
    { prefix, checks: [open, byKey], routes: [listModels(setup, measured), management] },
    { prefix, checks: [open, byPlatform], routes: [traces] },
    { prefix, checks: [open, byKey, keyScopes.managementOnly], routes: [localTraces(tracing)] },
    { prefix, checks: [open, asPlatform], routes: [platform(deps)] },
    // Without a key: the code stands for it.
    { prefix, checks: [open], routes: [exchange] },
  ]);
  addRoutes(app, [
    ...published,
    ...elsewhere,
    { checks: [open], routes: [keyApproval(publicDeps)] },
    { checks: [open, byKey], routes: [publishedApi()] },
    { checks: [open], routes: [consolePage(), pageFiles()] },
    { routes: [health({ bus, admission })] },
  ]);
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
  const { id, keyId, method } = request;
  const { url: route, isPublic } = matchedRoute(request);
  const level = isPublic ? 'debug' : 'info';
  if (log.writes?.(level) === false) return;
  const status = reply.raw.statusCode;
  const ids = { request_id: id, key_id: keyId, call_id: reply.getHeader('x-generation-id'), trace_id: traceIdOfRequest(request) };
  const incomplete = reply.raw.writableFinished ? {} : { incomplete: true };
  log[level]({ method, route, status, duration_ms: Math.round(durationMs), ...ids, ...incomplete }, 'request');
}
