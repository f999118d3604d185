import { hash, timingSafeEqual } from 'node:crypto';
import type { onRequestHookHandler } from 'fastify';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, resolveSecret, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from './error-reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Id of the key that calls, once it is known; `""` before that. */
    keyId: string;
  }
}

interface KnownKey {
  id: string;
  disabled: boolean;
}

/** Configured keys by the SHA-256 of their secrets. */
type KeyTable = ReadonlyMap<string, KnownKey>;

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;
/** What a header can carry as one word. */
const SECRET = /^[\x21-\x7e]+$/;

const refuse = {
  noKey: unauthorized('No API key was given: send it as "Authorization: Bearer <key>"'),
  noBearer: unauthorized('The Authorization header is not of the form "Bearer <key>"'),
  unknown: unauthorized('The API key is not valid'),
  disabled: unauthorized('The API key is disabled'),
};

/**
 * Resolves the secrets of the configured keys. A disabled key may do without one; blanks around a secret, as a file leaves them behind,
 * are no part of it. @throws `config.invalid` naming one that is missing, repeated, or that no caller could send
 */
export function readKeys({ keys }: Pick<RouterConfig, 'keys'>, environment: Environment): KeyTable {
  const table = new Map<string, KnownKey>();
  for (const { id, key, disabled } of keys) {
    const secret = resolveSecret(key, environment)?.trim() ?? '';
    if (secret === '' && disabled) continue;
    if (secret === '') throw new SwitchyardError('config.invalid', `${variableOf(key)} is not set: the router's key '${id}' needs it`);
    if (!SECRET.test(secret)) {
      throw new SwitchyardError('config.invalid', `${variableOf(key)}: the secret of the router's key '${id}' may hold no blanks, and only letters of ASCII`);
    }
    const digest = hash('sha256', secret);
    const other = table.get(digest);
    if (other !== undefined) throw new SwitchyardError('config.invalid', `the router's keys '${other.id}' and '${id}' have the same secret`);
    table.set(digest, { id, disabled });
  }
  return table;
}

/** A hook that lets only callers with a key pass, and names the key in `request.keyId`. */
export function bearerAuth(keys: KeyTable): onRequestHookHandler {
  const digestOf = cachedDigest();
  return (request, reply, done) => {
    const { authorization } = request.headers;
    if (authorization === undefined) return refuse.noKey(reply);
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined) return refuse.noBearer(reply);
    // Looked up by its hash: how long that takes says nothing about a secret, whatever part of it was guessed.
    const key = keys.get(digestOf(request.raw.socket, secret));
    if (key === undefined) return refuse.unknown(reply);
    if (key.disabled) return refuse.disabled(reply);
    request.keyId = key.id;
    done();
  };
}

/** Hashing is the dearest part of this check, and a client shows the same secret with each request of a connection: it is hashed with the first. */
function cachedDigest(): (connection: object, secret: string) => string {
  const shown = new WeakMap<object, { secret: string; digest: string }>();
  return (connection, secret) => {
    const last = shown.get(connection);
    // A proxy may send many clients' requests on one connection, so none may learn from the time what another has shown.
    if (last !== undefined && areEqual(last.secret, secret)) return last.digest;
    const digest = hash('sha256', secret);
    shown.set(connection, { secret, digest });
    return digest;
  };
}

/** Takes as long whatever part of them is the same. Secrets are of ASCII, so that a character is a byte. */
function areEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}

function unauthorized(message: string) {
  return preparedRefusal(new SwitchyardError('request.unauthorized', message));
}
