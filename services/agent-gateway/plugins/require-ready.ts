import type { FastifyInstance, FastifyReply } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Readiness, ReadinessGate } from '../readiness.ts';

/** Refuses requests while the gateway can't serve them. */
export function requireReady(app: FastifyInstance, gate: ReadinessGate): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.isPublic === true) return;
    const readiness = await gate.admits();
    if (readiness !== 'ready') throw notReady(readiness, reply);
  });
}

/** The refusal. A client of a gateway that is leaving is also told to take a new connection. */
export function notReady(readiness: Exclude<Readiness, 'ready'>, reply: FastifyReply): SwitchyardError {
  if (readiness === 'draining') reply.header('connection', 'close');
  return new SwitchyardError('service.not_ready', REASONS[readiness]);
}

const REASONS = {
  booting: 'the server is still starting',
  unavailable: 'the server can not reach its stores right now',
  draining: 'the server is shutting down',
} as const;
