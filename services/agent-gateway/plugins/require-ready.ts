import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Bus } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Readiness, ReadinessGate } from '../readiness.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** It appends a command to the log: refused while the bus has no capacity, or none for model calls. */
    appendsCommand?: boolean;
    /** Its command starts no model call but what was admitted already, so it is not refused for those that wait. */
    startsNoCall?: boolean;
  }
}

/** Refuses requests while the gateway is not ready, and commands while the bus has no capacity. */
export function requireReady(app: FastifyInstance, { gate, bus }: { gate: ReadinessGate; bus: Pick<Bus, 'hasCapacity'> }): void {
  const refusalOf = (readiness: Readiness, request: FastifyRequest, reply: FastifyReply) => {
    if (readiness !== 'ready') return notReady(readiness, reply);
    const { appendsCommand = false, startsNoCall = false } = request.routeOptions.config;
    const isTooMuch = appendsCommand && !bus.hasCapacity(startsNoCall ? undefined : 'router.turn');
    return isTooMuch ? new SwitchyardError('service.overloaded', 'the server is overloaded: too much work is waiting') : undefined;
  };
  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.isPublic === true) return done();
    const readiness = gate.admits();
    if (typeof readiness === 'string') done(refusalOf(readiness, request, reply));
    else readiness.then((found) => done(refusalOf(found, request, reply)), done);
  });
  // Also on requests admitted before the drain.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (gate.isDraining) reply.header('connection', 'close');
    done();
  });
}

/** While draining the connection closes too, so that the client takes a new one. */
export function notReady(readiness: Exclude<Readiness, 'ready'>, reply: FastifyReply): SwitchyardError {
  if (readiness === 'draining') reply.header('connection', 'close');
  return new SwitchyardError('service.not_ready', REASONS[readiness]);
}

export const REASONS = {
  booting: 'the server is still starting',
  unavailable: 'the server can not reach its stores right now',
  draining: 'the server is shutting down',
} as const;
