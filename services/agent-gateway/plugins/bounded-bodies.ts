import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { BodyBudget, type BodyShare } from '#shared/http-server/body-budget.ts';
import { bodyIsAnnounced } from '#shared/http-server/json-bodies.ts';
import { limits } from '../limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: the request has no body. */
    bodyShare: BodyShare | null;
  }
}

/**
 * Refuses bodies with 503 while `limits.bufferedBodyBytes` are held. A body counts until the response closes, since the route holds it parsed. Install it behind
 * the checks that need no body.
 */
export function boundBodies(app: FastifyInstance): void {
  const budget = new BodyBudget(
    limits.bufferedBodyBytes,
    new SwitchyardError('service.overloaded', 'the byte budget of the server for request bodies is used up'),
  );
  app.decorateRequest('bodyShare', null);
  app.addHook('onRequest', (request, { raw: response }, done) => {
    if (!bodyIsAnnounced(request.headers)) return done();
    const share = budget.open(Math.min(Number(request.headers['content-length'] ?? 0), limits.bodyBytes));
    request.bodyShare = share;
    // A closed response emits no further `close`.
    if (response.destroyed) share.close();
    else response.once('close', share.close);
    done();
  });
}
