import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { cookieValues, LOGIN_COOKIE } from './login-cookie.ts';
import { isFromAnotherOrigin, isFromItsOwnOrigin } from './same-origin.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its requests carry a signature, which the route checks, in place of the agent's key. */
    isSigned?: boolean;
    /** A page: without a key, a browser is sent to the login. */
    isPage?: boolean;
  }
}

/** What of a request has the agent's key. */
type Credential = 'header' | 'cookie';

export interface AgentKey {
  /** Compares hashes, in constant time. */
  is(key: Buffer): boolean;
  /** Null: none is valid. The cookie counts only without an Authorization header. */
  credentialOf(headers: IncomingHttpHeaders): Credential | null;
}

export function agentKey(apiKey: string): AgentKey {
  const expected = hash('sha256', Buffer.from(apiKey, 'utf8'), 'buffer');
  const is = (key: Buffer) => timingSafeEqual(expected, hash('sha256', key, 'buffer'));
  return {
    is,
    credentialOf({ authorization, cookie }) {
      if (authorization === undefined) return cookieValues(cookie, LOGIN_COOKIE).some(is) ? 'cookie' : null;
      const [, key] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
      // Node decodes headers as latin1: this restores the key's UTF-8 bytes.
      return key !== undefined && is(Buffer.from(key, 'latin1')) ? 'header' : null;
    },
  };
}

/**
 * Refuses requests without the agent's key, also for unknown addresses: no route can be probed. With the cookie, which a browser sends by itself, pages of
 * other origins must change nothing.
 */
export function requireAgentKey(app: FastifyInstance, key: AgentKey): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { isPublic = false, isSigned = false, isPage = false } = request.routeOptions.config;
    if (isPublic || isSigned || (request.is404 && needsNoKey(app, request))) return done();
    const credential = key.credentialOf(request.headers);
    if (credential === 'cookie' && changesState(request) && !isFromItsOwnOrigin(request.headers)) return done(otherOrigin());
    if (credential !== null) return done();
    if (!isPage || !request.headers.accept?.includes('text/html')) return done(unauthorized());
    reply.header('cache-control', 'no-store').redirect(`/auth/login?next=${encodeURIComponent(request.url)}`, 302);
  });
}

/** An address that takes requests without the key with other methods. */
function needsNoKey({ knownAddresses }: FastifyInstance, { url }: FastifyRequest): boolean {
  return knownAddresses.configsAt(url).some(({ isPublic, isSigned }) => isPublic === true || isSigned === true);
}

/** For routes that need no key and set or clear the cookie: refuses what a browser sends for a page of another origin. */
export function refuseOtherOrigins(request: FastifyRequest): void {
  if (changesState(request) && isFromAnotherOrigin(request.headers)) throw otherOrigin();
}

export function unauthorized(): SwitchyardError {
  return new SwitchyardError('request.unauthorized', 'a valid agent key is required: send it as "Authorization: Bearer <key>"');
}

function changesState({ method }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

function otherOrigin(): SwitchyardError {
  return new SwitchyardError(
    'request.forbidden',
    'with the cookie, only pages of this server may send such requests; other programs send the key as a bearer token',
  );
}
