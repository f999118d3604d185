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
 * Refuses bodies with 503 while the process holds `limits.bodyBytesInHand` of them. A body counts from its first byte until the response is
 * complete or the client disconnects: the route holds what was parsed of it for as long. To be installed behind the checks that need no body.
 */
export function boundBodies(app: FastifyInstance): void {
  const budget = new BodyBudget(
    limits.bodyBytesInHand,
    new SwitchyardError('service.overloaded', 'the server is reading as many request bodies as it can hold'),
  );
  app.decorateRequest('bodyShare', null);
  app.addHook('onRequest', (request, { raw: response }, done) => {
    if (!bodyIsAnnounced(request.headers)) return done();
    // A larger one is refused for its size once reading begins.
    const share = budget.open(Math.min(Number(request.headers['content-length'] ?? 0), limits.bodyBytes));
    request.bodyShare = share;
    // A response that is closed already emits nothing more.
    if (response.destroyed) share.close();
    else response.once('close', share.close);
    done();
  });
}
