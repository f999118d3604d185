import type { FastifyInstance, FastifyRequest, FastifyServerFactory } from 'fastify';
import { ModelCalls } from '#actors/effects/model-calls.ts';
import { pageFiles } from '#shared/http-server/built-pages.ts';
import { refuseUnknownRoutes } from '#shared/http-server/error-replies.ts';
import { localTraces } from '#shared/http-server/local-traces.ts';
import { addRoutes, openApp } from '#shared/http-server/open-app.ts';
import { SlotLeases } from '#shared/rates/slot-leases.ts';
import { carriedIn } from '#shared/telemetry/carried-context.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { RunAcceptance } from './accept-runs.ts';
import { assemble, type Components } from './components.ts';
import { declaredVariables } from './customers/declared-variables.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { Journeys } from './journeys/journeys.ts';
import { limits } from './limits.ts';
import { namedInAddresses } from './named-in-addresses.ts';
import { openDescription } from './openapi/description.ts';
import { agentKey, requireAgentKey } from './plugins/agent-auth.ts';
import { acceptJsonOnly, boundBodies } from './plugins/bounded-bodies.ts';
import { agentErrors } from './plugins/error-reply.ts';
import { pollingBackoff } from './plugins/polling-backoff.ts';
import { requireReady } from './plugins/require-ready.ts';
import { unknownFirst } from './plugins/unknown-first.ts';
import { unroutable } from './plugins/unroutable.ts';
import { cancelRun } from './routes/cancel-run.ts';
import { changeEvents } from './routes/change-events.ts';
import { chatPage } from './routes/chat-page.ts';
import { consolePage } from './routes/console-page.ts';
import { customers } from './routes/customers.ts';
import { deadLetters } from './routes/dead-letters.ts';
import { deliveries } from './routes/deliveries.ts';
import { eventWebhook } from './routes/event-webhook.ts';
import { health } from './routes/health.ts';
import { journeys } from './routes/journeys.ts';
import { listSessions } from './routes/list-sessions.ts';
import { login, loginStyles } from './routes/login.ts';
import { oneEvent } from './routes/one-event.ts';
import { patchSession } from './routes/patch-session.ts';
import { postEvent } from './routes/post-event.ts';
import { publishedApi } from './routes/published-api.ts';
import { readEvents } from './routes/read-events.ts';
import { root } from './routes/root.ts';
import { runs } from './routes/runs.ts';
import { sessions } from './routes/sessions.ts';
import { toolEvents } from './routes/tool-events.ts';
import { triggerRoutine } from './routes/trigger-routine.ts';
import { turns } from './routes/turns.ts';
import { variables } from './routes/variables.ts';
import { webhook } from './routes/webhook.ts';
import { triggerableRoutines } from './routines.ts';
import { agentRules } from './rules.ts';
import { toolServerTroubles } from './tool-server-states.ts';
import { ConditionJudge } from './webhooks/condition-judge.ts';
import { FanOut } from './webhooks/fan-out.ts';
import { inboundWebhooks } from './webhooks/inbound-webhooks.ts';
import { JudgingTurns } from './webhooks/judging-turns.ts';

/**
 * The agent's HTTP API. Components open when the app becomes ready (`listen` or the first `inject`) and close with it. Order of refusals: 401, 503, 404, 400,
 * 409.
 * @param serverFactory of a port that already listens; absent: `listen` opens one
 * @throws `config.invalid` for a routine that can't be triggered as configured
 */
export function buildApp(deps: AgentGatewayDeps, components: Components = assemble(deps), serverFactory?: FastifyServerFactory): FastifyInstance {
  const { agent, bundle, bus, cache, checkCallbackUrl, clock, config, log, metrics = noMetrics, tracing = noTracing } = deps;
  const { commandReplies, customerRows, deliveryRows, firstReplies, gate, processedCommands, runRows, runStepRows, sessionList, sessionLog, waits } =
    components;
  const api = openDescription();
  const key = agentKey(agent.apiKey);
  const variablesByName = declaredVariables(bundle);
  const knownJourneys = new Journeys(bundle, components.evaluations);
  const named = namedInAddresses(components, { variables: variablesByName, journeys: knownJourneys }, log);
  const isKnownSession = named.session_id.isKnown;
  const app = openApp(agentRules, {
    log,
    metrics,
    tracing,
    requestMs: limits.requestMs,
    ...(serverFactory && { serverFactory }),
    precedence: unknownFirst(named),
    onUnroutable: unroutable({ key, gate, errors: agentErrors, log }),
  });
  // Of the whole app, so that an unknown address is refused like a known one.
  requireAgentKey(app, key);
  requireReady(app, { gate, bus });
  refuseUnknownRoutes(app, agentErrors);
  boundBodies(app, components.bodies);
  acceptJsonOnly(app);

  const carriedOf = ({ headers }: FastifyRequest) => carriedIn(headers, config.passesBaggage === true);
  const commands = { carriedOf, agent, commandReplies, processedCommands, customerRows, sessionLog, clock, waits, checkCallbackUrl, isKnownSession };
  const traces = { ...(deps.tracing && { tracing: deps.tracing }), traceNameField: bundle.body.manifest.agent_config.traces?.trace_id_field ?? null };
  const routines = triggerableRoutines(bundle, config.runs);
  const acceptance = new RunAcceptance({
    ...traces,
    runRows,
    deliveryRows,
    bus,
    maxTimeoutMs: config.runs.maxTimeoutMs,
    bundleHash: agent.bundleHash,
    waits,
    log,
  });
  const webhooks = inboundWebhooks(routines, bundle.body.manifest.agent_config.webhooks);
  const judge = new ConditionJudge({
    modelCalls: new ModelCalls('webhook', { bus, settings: deps.modelCalls, clock, waits, log }),
    llms: bundle.body.manifest.agent_config.llms,
    log,
  });
  const judgingTurns = new JudgingTurns({ leases: new SlotLeases(cache), waits, log });
  const fanOut = new FanOut({ deliveryRows, acceptance, judge, judgingTurns, bus });
  addRoutes(app, [
    {
      routes: [
        health({ gate, key, troubles: () => toolServerTroubles({ database: deps.database, bundleHash: agent.bundleHash, waits }) }),
        login({ key, cache, clock, waits }),
        loginStyles(),
      ],
    },
    { routes: [root(api), publishedApi(api)] },
    { routes: [chatPage({ agentName: bundle.body.manifest.name }), consolePage({ agentName: bundle.body.manifest.name }), pageFiles()] },
    { routes: [sessions(commands), listSessions({ sessionList }), patchSession(commands), postEvent(commands), eventWebhook(commands), toolEvents(commands)] },
    { routes: [customers({ customerRows, firstReplies, commandReplies, clock, waits })] },
    { routes: [variables({ variables: variablesByName, variableRows: components.variableRows, customerRows, firstReplies })] },
    {
      routes: [
        oneEvent(commands),
        turns({ turnRecords: components.turnRecords, isKnownSession }),
        changeEvents({ ...commands, feeds: components.feeds }),
        readEvents({ ...components, backoff: pollingBackoff({ cache, clock, log }), log }),
      ],
    },
    {
      routes: [
        triggerRoutine({ routines, checkCallbackUrl, runRows, acceptance, sessionLog }),
        runs({ runRows, runStepRows }),
        cancelRun({ ...commands, runRows }),
        deliveries({ deliveryList: components.deliveryList, runRows, isKnownSession }),
        deadLetters({ deadLetterRows: components.deadLetterRows, bus, clock }),
      ],
    },
    { routes: [journeys({ journeys: knownJourneys })] },
    { routes: [localTraces(tracing)] },
    { routes: [webhook({ webhooks, secretNow: deps.secretNow, runRows, acceptance, fanOut })] },
  ]);

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
