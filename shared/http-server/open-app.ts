import {
  type FastifyError,
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
  fastify,
  type onRequestHookHandler,
} from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { SwitchyardError } from '../errors/switchyard-error.ts';
import { traceRequests } from '../telemetry/http-server-spans.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { type BrokenRequests, brokenRequestResponder } from './broken-requests.ts';
import { type ErrorRules, installErrorReplies, sendError } from './error-replies.ts';
import { followRequests } from './follow-requests.ts';
import { knowAddresses } from './known-addresses.ts';
import { markRequests } from './mark-requests.ts';
import { openPublicPort, type PublicPort, type WhileBooting } from './open-public-port.ts';
import { refuseUnservable } from './refuse-unservable.ts';
import { requestIdsBy } from './request-id.ts';
import { closeWaitingResponses } from './waiting-responses.ts';
import type { ZodValidation } from './zod-validation.ts';

/** A row: in what the HTTP servers of the deployment differ. */
export interface ServerRules {
  /** Label `server` of the request metrics. */
  server: 'router' | 'agent';
  /** Of a caller's `x-request-id`. */
  requestIds: RegExp;
  /** Of a path's parameters. */
  maxParamCharacters: number;
  /** Whether each GET route also answers HEAD. */
  exposesHead: boolean;
  /** Incomplete ones; null: any number. */
  requestsPerConnection: number | null;
  errors: ErrorRules;
  validation: ZodValidation;
  brokenRequests: BrokenRequests;
  /** Until the app takes over the port. */
  whileBooting: Pick<WhileBooting, 'probes' | 'refusal'>;
}

export interface ServerLimits {
  /** For a whole request to arrive. */
  requestMs: number;
  /** Length of the system's accept queue. */
  connectionsToAccept: number;
}

export interface PortConfig {
  host: string;
  /** 0: any free port. */
  port: number;
}

/**
 * Listens on the public port of a server whose stores aren't connected yet: alive, not ready. All but probes is refused with 503.
 * @param setting name of the port's setting, for the message when it is taken
 * @throws `service.port_taken`
 */
export function openPort(
  rules: ServerRules,
  { requestMs, connectionsToAccept }: ServerLimits,
  { host, port }: PortConfig,
  setting?: string,
): Promise<PublicPort> {
  const { requestIds, brokenRequests, whileBooting } = rules;
  return openPublicPort({
    host,
    port,
    ...(setting !== undefined && { setting }),
    backlog: connectionsToAccept,
    requestTimeoutMs: requestMs,
    whileBooting: { ...whileBooting, requestIdOf: requestIdsBy(requestIds), respondToBrokenRequest: brokenRequestResponder(brokenRequests) },
  });
}

export interface AppDeps {
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
  requestMs: number;
  /** Of an open port; absent: `listen` opens one. */
  serverFactory?: FastifyServerFactory;
  /** As in `followRequests`. */
  onEnd?(request: FastifyRequest, reply: FastifyReply, durationMs: number): void;
  /** As in `installErrorReplies`. */
  precedence?(error: SwitchyardError, request: FastifyRequest): Promise<SwitchyardError | null> | null;
  /** For an address that can't be parsed, for which no hook runs; default: the error's reply. */
  onUnroutable?(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void;
}

/** An app with what all servers have: ids, errors, metrics, traces, the end of waiting responses. Opens nothing. */
export function openApp(rules: ServerRules, deps: AppDeps): FastifyInstance {
  const { log, metrics, tracing, requestMs, serverFactory, onEnd, precedence } = deps;
  const { server, errors } = rules;
  const sink = { errors, log };
  const onUnroutable = deps.onUnroutable ?? ((error, request, reply) => void sendError(error, request, reply, sink));
  const app = fastify({
    ...(serverFactory && { serverFactory }),
    // Refused in the server's own form.
    http: { requireHostHeader: false },
    requestTimeout: requestMs,
    routerOptions: { maxParamLength: rules.maxParamCharacters },
    exposeHeadRoutes: rules.exposesHead,
    genReqId: requestIdsBy(rules.requestIds),
    // While draining the server's own refusal is sent, not the framework's.
    return503OnClosing: false,
    frameworkErrors: onUnroutable,
    clientErrorHandler: brokenRequestResponder(rules.brokenRequests),
  });
  // So that text bodies are refused.
  app.removeContentTypeParser('text/plain');
  app.setValidatorCompiler(rules.validation.compiler);
  app.decorateRequest('failure', null);
  app.decorateRequest('route', null);
  knowAddresses(app);
  installErrorReplies(app, sink, precedence);
  // Before all other hooks, while the connection is certainly open.
  closeWaitingResponses(app, rules.requestsPerConnection);
  markRequests(app);
  traceRequests(app, tracing);
  followRequests(app, { server, metrics, ...(onEnd && { onEnd }) });
  // After the hooks that give a response its id and count it.
  refuseUnservable(app, rules);
  return app;
}

/** Routes with the checks that run before each of them, in this order. */
export interface RouteGroup {
  prefix?: string;
  checks?: readonly onRequestHookHandler[];
  routes: readonly (FastifyPluginAsync | FastifyPluginAsyncZod)[];
}

/** Fastify looks for the name of a plugin without one among all modules that the process has loaded: 50 µs and more for each. */
const DISPLAY_NAME = Symbol.for('fastify.display-name');

export function addRoutes(app: FastifyInstance, groups: readonly RouteGroup[]): void {
  for (const { prefix = '', checks = [], routes } of groups) {
    const group: FastifyPluginAsync = async (scope) => {
      for (const check of checks) scope.addHook('onRequest', check);
      // A plugin that is typed by its schemas takes any instance.
      for (const route of routes) await scope.register(Object.assign(route as FastifyPluginAsync, { [DISPLAY_NAME]: 'route' }));
    };
    app.register(Object.assign(group, { [DISPLAY_NAME]: `routes at ${prefix === '' ? '/' : prefix}` }), { prefix });
  }
}
