import fastify, { type FastifyInstance, type FastifyServerFactory } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { markRequests } from '#shared/http-server/mark-requests.ts';
import { traceRequests } from '#shared/telemetry/http-server-spans.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { assemble, type Components } from './components.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { limits } from './limits.ts';
import { bearerCheck, requireAgentKey } from './plugins/agent-auth.ts';
import { boundBodies } from './plugins/bounded-bodies.ts';
import { respondToBrokenRequest } from './plugins/broken-request.ts';
import { countRequests } from './plugins/count-requests.ts';
import { errorReply } from './plugins/error-reply.ts';
import { acceptJsonOnly } from './plugins/json-body.ts';
import { pollingBackoff } from './plugins/polling-backoff.ts';
import { requestIdOf, returnRequestId } from './plugins/request-id.ts';
import { requireReady } from './plugins/require-ready.ts';
import { unroutable } from './plugins/unroutable.ts';
import { closeWaitingResponses } from './plugins/waiting-responses.ts';
import { validateWithZod } from './plugins/zod-validation.ts';
import { health } from './routes/health.ts';
import { patchSession } from './routes/patch-session.ts';
import { postEvent } from './routes/post-event.ts';
import { readEvents } from './routes/read-events.ts';
import { runs } from './routes/runs.ts';
import { isSessionId } from './routes/session-id.ts';
import { sessions } from './routes/sessions.ts';
import { triggerRoutine } from './routes/trigger-routine.ts';
import { triggerableRoutines } from './routines.ts';

/**
 * The agent's HTTP API. Components open when the app becomes ready (`listen` or the first `inject`) and close with it. Order of refusals: 401, 503, 404, 400,
 * 409.
 * @param serverFactory of a port that already listens; absent: `listen` opens one
 * @throws `config.invalid` for a routine that can't be triggered as configured
 */
export function buildApp(deps: AgentGatewayDeps, components: Components = assemble(deps), serverFactory?: FastifyServerFactory): FastifyInstance {
  const { agent, bundle, bus, cache, clock, config, log, metrics = noMetrics } = deps;
  const { commandReplies, runRows, runStepRows, sessionLog, waits } = components;
  const hasKey = bearerCheck(agent.apiKey);
  const app = fastify({
    ...(serverFactory && { serverFactory }),
    logger: false,
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    routerOptions: { maxParamLength: limits.idCharacters },
    exposeHeadRoutes: false,
    // During close our own refusal, not the framework's.
    return503OnClosing: false,
    clientErrorHandler: respondToBrokenRequest,
    genReqId: requestIdOf,
    frameworkErrors: unroutable({ hasKey, gate: components.gate, log }),
  });
  app.setValidatorCompiler(validateWithZod);
  acceptJsonOnly(app);

  const isKnownSession = async (sessionId: string) => {
    if (!isSessionId(sessionId)) return false;
    try {
      return (await sessionLog.heads([sessionId])).has(sessionId);
    } catch (error) {
      log.warn({ err: error, session_id: sessionId }, 'a session could not be looked up');
      return null;
    }
  };
  app.setErrorHandler(errorReply({ log, isKnownSession }));
  app.setNotFoundHandler(async () => {
    throw new SwitchyardError('request.not_found', 'there is nothing at this address');
  });
  // Before all other hooks, while the connection is certainly open.
  closeWaitingResponses(app);
  markRequests(app);
  returnRequestId(app);
  traceRequests(app, deps.tracing ?? noTracing);
  countRequests(app, metrics);
  requireAgentKey(app, hasKey);
  requireReady(app, { gate: components.gate, bus });
  boundBodies(app);

  const routes = app.withTypeProvider<ZodTypeProvider>();
  routes.register(health({ gate: components.gate }));
  routes.register(sessions({ agent, commandReplies, sessionLog, clock, waits, isKnownSession }));
  routes.register(patchSession({ commandReplies, clock, waits, isKnownSession }));
  routes.register(postEvent({ agent, commandReplies, isKnownSession, clock, waits }));
  routes.register(readEvents({ ...components, backoff: pollingBackoff({ cache, clock, log }), log }));
  const { checkCallbackUrl } = deps;
  const traced = { ...(deps.tracing && { tracing: deps.tracing }), traceNameField: bundle.body.manifest.agent_config.traces?.trace_id_field ?? null };
  const routines = triggerableRoutines(bundle, config.runs);
  const { maxTimeoutMs } = config.runs;
  routes.register(triggerRoutine({ ...traced, routines, checkCallbackUrl, runRows, sessionLog, bus, maxTimeoutMs, bundleHash: agent.bundleHash, waits, log }));
  routes.register(runs({ runRows, runStepRows }));

  const unwatch = metrics.watch('streamsOpen', () => [
    { labels: { kind: 'agent_stream' }, value: components.streams.size },
    { labels: { kind: 'agent_long_poll' }, value: components.polls.size },
  ]);
  app.addHook('onReady', async () => components.open());
  app.addHook('onClose', async () => {
    unwatch();
    await components.close();
  });
  return app;
}
