import { errorCodes, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ArrivingBodies, type FailBody } from '#shared/http-server/arriving-bodies.ts';
import { BodyBudget, type BodyShare } from '#shared/http-server/body-budget.ts';
import { bodyIsAnnounced, parseJsonBodies } from '#shared/http-server/json-bodies.ts';
import type { JsonExcess } from '#shared/http-server/json-bounds.ts';
import { LargeBodyQueue } from '#shared/http-server/large-body-queue.ts';
import { pointerAt } from '#shared/json-pointer-at.ts';
import { MAX_VALUE_DEPTH, nestedTooDeep, nestingViolation } from '#shared/json-schema.ts';
import { limits, type Waits } from '../limits.ts';
import { changedNumber, invalidField } from './error-reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: the request has no body. */
    countedBody: CountedBody | null;
  }
}

/** A body in one of the budgets. */
interface CountedBody {
  /** @throws `service.overloaded` */
  grew(bytes: number): void;
  /** As in `readBody`. */
  reading(fail: FailBody): (() => void) | undefined;
}

/** For the readers of bodies. */
export const countedBody = {
  grew: (request: FastifyRequest, bytes: number) => request.countedBody?.grew(bytes),
  reading: (request: FastifyRequest, fail: FailBody) => request.countedBody?.reading(fail),
};

/** Bodies that have not arrived: of callers with the key, and of requests that need none. */
export interface AgentBodies {
  keyed: ArrivingBodies;
  unkeyed: ArrivingBodies;
}

export function agentBodies({ unkeyedBodyMs }: Pick<Waits, 'unkeyedBodyMs'>): AgentBodies {
  const late = new SwitchyardError('request.timeout', 'the body was not received in time');
  return { keyed: new ArrivingBodies(), unkeyed: new ArrivingBodies({ ms: unkeyedBodyMs, error: late }) };
}

/**
 * Refuses bodies with 503 while `limits.bufferedBodyBytes` are held, or `bufferedUnkeyedBytes` of requests that need no key. A body counts until the response closes, since the route holds it parsed. Install it behind
 * the checks that need no body.
 */
export function boundBodies(app: FastifyInstance, arriving: AgentBodies): void {
  const refusal = new SwitchyardError('service.overloaded', 'the byte budget of the server for request bodies is used up');
  const keyed = new BodyBudget(limits.bufferedBodyBytes, refusal);
  // Of their own: they are read before it is known whether their signature is right, and must not use up those of callers with the key.
  const unkeyed = new BodyBudget(limits.bufferedUnkeyedBytes, refusal);

  const bodyWithKey = (share: BodyShare, reply: FastifyReply): CountedBody => ({ grew: share.grew, reading: (fail) => arriving.keyed.begin(reply, fail) });
  // The one that has been arriving for longest gives way: a delivery takes moments, and clients that keep theirs unfinished would keep all others out.
  const bodyWithoutKey = (share: BodyShare, reply: FastifyReply): CountedBody => {
    let isFailed = false;
    return {
      grew: (bytes) => {
        // Once it has given way itself, no other has to.
        while (!isFailed) {
          try {
            return share.grew(bytes);
          } catch (error) {
            if (!arriving.unkeyed.failOldest(refusal)) throw error;
          }
        }
      },
      reading: (fail) =>
        arriving.unkeyed.begin(reply, (error) => {
          isFailed = true;
          share.close();
          fail(error);
        }),
    };
  };

  app.decorateRequest('countedBody', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { headers, routeOptions } = request;
    if (!bodyIsAnnounced(headers)) return done();
    const { isSigned = false, isPublic = false } = routeOptions.config;
    const hasKey = !isSigned && !isPublic;
    const share = hasKey ? keyed.open(Math.min(Number(headers['content-length'] ?? 0), limits.bodyBytes)) : unkeyed.open(0);
    request.countedBody = hasKey ? bodyWithKey(share, reply) : bodyWithoutKey(share, reply);
    // A closed response emits no further `close`.
    if (reply.raw.destroyed) share.close();
    else reply.raw.once('close', share.close);
    done();
  });
}

/** Large bodies wait for each other. Deep nesting is refused: walking it would exhaust the stack, and no store takes it. */
export function acceptJsonOnly(app: FastifyInstance): void {
  const largeBodies = new LargeBodyQueue();
  parseJsonBodies(app, {
    limitBytes: limits.bodyBytes,
    ...countedBody,
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
