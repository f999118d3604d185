import type { FastifyPluginAsync } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ReadinessGate } from '../readiness.ts';

export const HEALTHY = { status: 'ok', service: 'agent-server' } as const;

/** GET /health/live: the process runs. GET /health/ready and /health: it can serve requests, else 503 with the state. No key needed; HEAD too. */
export function health({ gate }: { gate: ReadinessGate }): FastifyPluginAsync {
  const config = { isPublic: true };
  return async (app) => {
    app.get('/health/live', { config, exposeHeadRoute: true }, async () => HEALTHY);
    for (const path of ['/health', '/health/ready']) {
      app.get(path, { config, exposeHeadRoute: true }, async (_request, reply) => {
        const status = await gate.check();
        return status === 'ready' ? HEALTHY : reply.code(503).send({ status });
      });
    }
    app.get('/health/*', { config }, async () => {
      throw new SwitchyardError('request.not_found', 'there is nothing at this address');
    });
  };
}
