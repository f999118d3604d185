import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type Environment, resolveSecret, variableOf } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

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
    const hash = hashOf(secret);
    const other = table.get(hash);
    if (other !== undefined) throw new SwitchyardError('config.invalid', `the router's keys '${other.id}' and '${id}' have the same secret`);
    table.set(hash, { id, disabled });
  }
  return table;
}

/** A hook that lets only callers with a key pass, and names the key in `request.keyId`. @throws `request.unauthorized` */
export function bearerAuth(keys: KeyTable) {
  return async (request: FastifyRequest): Promise<void> => {
    const { authorization } = request.headers;
    if (authorization === undefined) throw unauthorized('No API key was given: send it as "Authorization: Bearer <key>"');
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined) throw unauthorized('The Authorization header is not of the form "Bearer <key>"');
    // Looked up by its hash: how long that takes says nothing about a secret, whatever part of it was guessed.
    const key = keys.get(hashOf(secret));
    if (key === undefined) throw unauthorized('The API key is not valid');
    if (key.disabled) throw unauthorized('The API key is disabled');
    request.keyId = key.id;
  };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function unauthorized(message: string): SwitchyardError {
  return new SwitchyardError('request.unauthorized', message);
}
