import { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Admission } from './admission.ts';
import type { GatewayLimits } from './limits.ts';
import { indexModels } from './model-index.ts';
import { bearerAuth, readKeys } from './plugins/bearer-auth.ts';
import { answerBrokenRequest, installErrorReplies, sendError } from './plugins/error-reply.ts';
import { requestIdOf } from './plugins/request-id.ts';
import { closeWaitingAnswers } from './plugins/waiting-answers.ts';
import { validateWithZod } from './plugins/zod-validation.ts';
import type { CallReaders } from './relay/call-readers.ts';
import { chatCompletions } from './routes/chat-completions.ts';
import { health } from './routes/health.ts';
import { listModels } from './routes/models.ts';
import { resumeGeneration } from './routes/resume-generation.ts';

export interface AppDeps {
  routerConfig: RouterConfig;
  /** Where the secrets of the configured keys stand. */
  environment: Environment;
  houseSecret: string;
  bus: Bus;
  readers: CallReaders;
  admission: Admission;
  log: Log;
  clock: Clock;
  limits: GatewayLimits;
}

/** All routes of the router gateway. Opens nothing. @throws `config.invalid` for a key without secret or an unknown default model */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { admission, bus, environment, limits, log, routerConfig } = deps;
  const keys = readKeys(routerConfig, environment);
  const models = indexModels(routerConfig);
  const app = fastify({
    genReqId: requestIdOf,
    requestIdHeader: false,
    requestTimeout: limits.requestMs,
    // Draining is ours, with the router's error body; the framework's own would come first.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => void sendError(log, error, request, reply),
    clientErrorHandler: answerBrokenRequest,
  });
  // A text is no request: it would be refused for not being an object.
  app.removeContentTypeParser('text/plain');
  app.setValidatorCompiler(validateWithZod);
  installErrorReplies(app, log);
  app.decorateRequest('keyId', '');
  closeWaitingAnswers(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    const startedAtMs = performance.now();
    reply.raw.once('close', () => logRequest(log, request, reply, performance.now() - startedAtMs));
  });

  const api: FastifyPluginAsync = async (scope) => {
    scope.addHook('onRequest', async (_, reply) => {
      if (admission.closing) reply.header('connection', 'close');
      admission.assertOpen();
    });
    scope.addHook('onRequest', bearerAuth(keys));
    await scope.register(chatCompletions({ ...deps, models, totalMs: routerConfig.timeouts.total_ms }));
    await scope.register(resumeGeneration({ ...deps, totalMs: routerConfig.timeouts.total_ms }));
    await scope.register(listModels(routerConfig));
  };
  app.register(api, { prefix: '/api/v1' });
  app.register(health({ bus, admission }));
  return app;
}

/** One line for each request, once its connection is free or gone. Probes are too many to be news. */
function logRequest(log: Log, request: FastifyRequest, reply: FastifyReply, durationMs: number): void {
  const { id: requestId, keyId, method, routeOptions } = request;
  const facts = { requestId, keyId, method, route: routeOptions.url, status: reply.raw.statusCode, durationMs: Math.round(durationMs) };
  const level = routeOptions.url?.startsWith('/health/') ? 'debug' : 'info';
  log[level]({ ...facts, generationId: reply.getHeader('x-generation-id') }, 'request');
}
