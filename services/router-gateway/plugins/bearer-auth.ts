import { timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction, onRequestHookHandler } from 'fastify';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { type CallerKey, hashOfSecret, type KeyDirectory, refusalOf } from '#shared/keys/caller-key.ts';
import { errorReply } from './error-reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** `""` before authentication. */
    keyId: string;
    /** Null before authentication, and for requests with the platform's keys. */
    callerKey: CallerKey | null;
  }
}

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;

const refuse = {
  noKey: unauthorized('No API key was given: send it as "Authorization: Bearer <key>"'),
  noBearer: unauthorized('The Authorization header is not of the form "Bearer <key>"'),
  unknown: unauthorized('The API key is not valid'),
  disabled: unauthorized('The API key is disabled'),
  expired: unauthorized('The API key has expired'),
  'oauth-expired': unauthorized('The OAuth session of the API key has expired: authorize again'),
};

/**
 * Requires a key of the directory, and sets `request.keyId` and `request.callerKey`. Waits for a look-up in the database alone: keys of the file and cached ones
 * cost no promise. A request whose client leaves during the look-up goes no further.
 */
export function bearerAuth(keys: KeyDirectory, clock: Clock): onRequestHookHandler {
  const digestOf = cachedDigest();
  const admit = (key: CallerKey | null, request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => {
    if (key === null) return refuse.unknown(reply);
    const refusal = refusalOf(key, clock.nowMs());
    if (refusal !== null) return refuse[refusal](reply);
    request.keyId = key.id;
    request.callerKey = key;
    done();
  };
  return (request, reply, done) => {
    const { authorization } = request.headers;
    if (authorization === undefined) return refuse.noKey(reply);
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined) return refuse.noBearer(reply);
    // By hash: the time does not depend on how much of a guessed secret is right.
    const found = keys.find(digestOf(request.raw.socket, secret));
    if (!(found instanceof Promise)) return admit(found, request, reply, done);
    const admitConnected = (key: CallerKey | null) => {
      // The client has left, and `close` was emitted: what later hooks and routes hold until then would not be released.
      if (!reply.raw.destroyed) admit(key, request, reply, done);
    };
    found.then(admitConnected).catch(done);
  };
}

/** Caches the hash of a connection's last secret: hashing is most of this check's cost. */
function cachedDigest(): (connection: object, secret: string) => string {
  const shown = new WeakMap<object, { secret: string; digest: string }>();
  return (connection, secret) => {
    const last = shown.get(connection);
    // In constant time: a proxy may send many clients' requests on one connection, and none may learn another's secret.
    if (last !== undefined && areEqual(last.secret, secret)) return last.digest;
    const digest = hashOfSecret(secret);
    shown.set(connection, { secret, digest });
    return digest;
  };
}

/** Secrets are ASCII: one byte per character. */
function areEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}

function unauthorized(message: string) {
  return preparedRefusal(new SwitchyardError('request.unauthorized', message), errorReply);
}
