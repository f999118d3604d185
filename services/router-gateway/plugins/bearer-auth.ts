import { hash, timingSafeEqual } from 'node:crypto';
import type { onRequestHookHandler } from 'fastify';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, resolveSecret, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { errorReply } from './error-reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** `""` before authentication. */
    keyId: string;
  }
}

interface KnownKey {
  id: string;
  disabled: boolean;
}

/** By SHA-256 of the secret. */
type KeyTable = ReadonlyMap<string, KnownKey>;

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;
/** Possible in a header. */
const SECRET = /^[\x21-\x7e]+$/;

const refuse = {
  noKey: unauthorized('No API key was given: send it as "Authorization: Bearer <key>"'),
  noBearer: unauthorized('The Authorization header is not of the form "Bearer <key>"'),
  unknown: unauthorized('The API key is not valid'),
  disabled: unauthorized('The API key is disabled'),
};

/**
 * Resolves the secrets of the configured keys. A disabled key needs none; surrounding white space, as in files, is trimmed.
 * @throws `config.invalid` naming a secret that is missing, repeated, or not possible in a header
 */
export function readKeys({ keys }: Pick<RouterConfig, 'keys'>, environment: Environment): KeyTable {
  const table = new Map<string, KnownKey>();
  for (const { id, key, disabled } of keys) {
    const secret = resolveSecret(key, environment)?.trim() ?? '';
    if (secret === '' && disabled) continue;
    if (secret === '') throw new SwitchyardError('config.invalid', `${variableOf(key)} is not set: the router's key '${id}' needs it`);
    if (!SECRET.test(secret)) {
      throw new SwitchyardError(
        'config.invalid',
        `${variableOf(key)}: the secret of the router's key '${id}' may contain only printable ASCII characters, and no spaces`,
      );
    }
    const digest = hash('sha256', secret);
    const other = table.get(digest);
    if (other !== undefined) throw new SwitchyardError('config.invalid', `the router's keys '${other.id}' and '${id}' have the same secret`);
    table.set(digest, { id, disabled });
  }
  return table;
}

/** Requires a configured key and sets `request.keyId`. */
export function bearerAuth(keys: KeyTable): onRequestHookHandler {
  const digestOf = cachedDigest();
  return (request, reply, done) => {
    const { authorization } = request.headers;
    if (authorization === undefined) return refuse.noKey(reply);
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined) return refuse.noBearer(reply);
    // By hash: the time does not depend on how much of a guessed secret is right.
    const key = keys.get(digestOf(request.raw.socket, secret));
    if (key === undefined) return refuse.unknown(reply);
    if (key.disabled) return refuse.disabled(reply);
    request.keyId = key.id;
    done();
  };
}

/** Caches the hash of a connection's last secret: hashing is most of this check's cost. */
function cachedDigest(): (connection: object, secret: string) => string {
  const shown = new WeakMap<object, { secret: string; digest: string }>();
  return (connection, secret) => {
    const last = shown.get(connection);
    // In constant time: a proxy may send many clients' requests on one connection, and none may learn another's secret.
    if (last !== undefined && areEqual(last.secret, secret)) return last.digest;
    const digest = hash('sha256', secret);
    shown.set(connection, { secret, digest });
    return digest;
  };
}

/** Secrets are ASCII: one byte per character. */
function areEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}

function unauthorized(message: string) {
  return preparedRefusal(errorReply(new SwitchyardError('request.unauthorized', message)));
}
