import type { FastifyPluginAsync } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import type { Admission } from '../admission.ts';

export interface HealthDeps {
  bus: Bus;
  admission: Admission;
}

export const HEALTHY = { status: 'ok' } as const;

/** GET /health/live and /health/ready (503 when it should get no requests), without a key. */
export function health({ bus, admission }: HealthDeps): FastifyPluginAsync {
  const config = { isPublic: true };
  return async (app) => {
    app.get('/health/live', { config }, async () => HEALTHY);
    app.get('/health/ready', { config }, async (_, reply) => {
      if (admission.closing) return reply.code(503).send({ status: 'draining' });
      if (!bus.isReady()) return reply.code(503).send({ status: 'bus_unreachable' });
      return HEALTHY;
    });
  };
}
