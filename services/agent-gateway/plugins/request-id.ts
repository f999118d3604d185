import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { ulid } from '#shared/ids.ts';

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/** The caller's `x-request-id` if it is safe to log, else a new id. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && ACCEPTABLE.test(given) ? given : `req_${ulid()}`;
}

export function returnRequestId(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
}
