import { errorCodes, type FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { BodyBudget, type BodyShare } from '#shared/http-server/body-budget.ts';
import { bodyIsAnnounced, parseJsonBodies } from '#shared/http-server/json-bodies.ts';
import type { JsonExcess } from '#shared/http-server/json-bounds.ts';
import { LargeBodyQueue } from '#shared/http-server/large-body-queue.ts';
import { pointerAt } from '#shared/json-pointer-at.ts';
import { MAX_VALUE_DEPTH, nestedTooDeep, nestingViolation } from '#shared/json-schema.ts';
import { limits } from '../limits.ts';
import { changedNumber, invalidField } from './error-reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: the request has no body. */
    bodyShare: BodyShare | null;
  }
}

/**
 * Refuses bodies with 503 while `limits.bufferedBodyBytes` are held, or `bufferedSignedBytes` of signed requests. A body counts until the response closes, since the route holds it parsed. Install it behind
 * the checks that need no body.
 */
export function boundBodies(app: FastifyInstance): void {
  const refusal = new SwitchyardError('service.overloaded', 'the byte budget of the server for request bodies is used up');
  const keyed = new BodyBudget(limits.bufferedBodyBytes, refusal);
  // Of their own: they are read before it is known whether their signature is right, and must not use up those of callers with the key.
  const signed = new BodyBudget(limits.bufferedSignedBytes, refusal);
  app.decorateRequest('bodyShare', null);
  app.addHook('onRequest', (request, { raw: response }, done) => {
    if (!bodyIsAnnounced(request.headers)) return done();
    const budget = request.routeOptions.config.isSigned === true ? signed : keyed;
    const share = budget.open(Math.min(Number(request.headers['content-length'] ?? 0), limits.bodyBytes));
    request.bodyShare = share;
    // A closed response emits no further `close`.
    if (response.destroyed) share.close();
    else response.once('close', share.close);
    done();
  });
}

/** Large bodies wait for each other. Deep nesting is refused: walking it would exhaust the stack, and no store takes it. */
export function acceptJsonOnly(app: FastifyInstance): void {
  const largeBodies = new LargeBodyQueue();
  parseJsonBodies(app, {
    limitBytes: limits.bodyBytes,
    grew: (request, bytes) => request.bodyShare?.grew(bytes),
    schedule: (sizeBytes, handle) => largeBodies.run(sizeBytes, handle),
    mayBeEmpty: true,
    bounded: { by: { depth: MAX_VALUE_DEPTH, values: Number.POSITIVE_INFINITY }, refusal: tooDeepAt },
    refuse(value, json) {
      const tooDeep = nestingViolation(value);
      return tooDeep === null ? changedNumber(json) : invalidField(tooDeep.path, tooDeep.message);
    },
  });
}

function tooDeepAt({ at }: JsonExcess, json: Buffer): Error {
  const before = json.subarray(0, at).toString();
  try {
    const { path, message } = nestedTooDeep(pointerAt(before, before.length));
    return invalidField(path, message);
  } catch {
    // A name on the way is no string of JSON.
    return new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY();
  }
}
