import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Readiness, ReadinessGate } from '../readiness.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Puts a command into the log: refused while that has no room to spare. */
    bringsWork?: boolean;
  }
}

/** Refuses requests while the gateway can't serve them, and those that bring work while there is too much of it. */
export function requireReady(app: FastifyInstance, { gate, bus }: { gate: ReadinessGate; bus: Pick<Bus, 'hasCapacity'> }): void {
  const refusalOf = (readiness: Readiness, request: FastifyRequest, reply: FastifyReply) => {
    if (readiness !== 'ready') return notReady(readiness, reply);
    // Whatever it is, a turn may come of it.
    const isTooMuch = request.routeOptions.config.bringsWork === true && !bus.hasCapacity('router.turn');
    return isTooMuch ? new SwitchyardError('service.overloaded', 'the server has more work than it gets done right now') : undefined;
  };
  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.isPublic === true) return done();
    const readiness = gate.admits();
    if (typeof readiness === 'string') done(refusalOf(readiness, request, reply));
    else readiness.then((found) => done(refusalOf(found, request, reply)), done);
  });
  // Also with what was asked before: who keeps its connection would ask here again.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (gate.isDraining) reply.header('connection', 'close');
    done();
  });
}

/** The refusal. A client of a gateway that is leaving is also told to take a new connection. */
export function notReady(readiness: Exclude<Readiness, 'ready'>, reply: FastifyReply): SwitchyardError {
  if (readiness === 'draining') reply.header('connection', 'close');
  return new SwitchyardError('service.not_ready', REASONS[readiness]);
}

/** What a refusal says, by the readiness of the gateway. */
export const REASONS = {
  booting: 'the server is still starting',
  unavailable: 'the server can not reach its stores right now',
  draining: 'the server is shutting down',
} as const;
