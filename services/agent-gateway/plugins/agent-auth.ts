import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its requests carry a signature, which the route checks, in place of the agent's key. */
    isSigned?: boolean;
  }
}

/** Compares hashes, in constant time. */
export function bearerCheck(apiKey: string): (authorization: string | undefined) => boolean {
  const expected = hash('sha256', Buffer.from(apiKey, 'utf8'), 'buffer');
  return (authorization) => {
    const [, key] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
    // Node decodes headers as latin1: this restores the key's UTF-8 bytes.
    return key !== undefined && timingSafeEqual(expected, hash('sha256', Buffer.from(key, 'latin1'), 'buffer'));
  };
}

/** Refuses requests without the agent's key, also for unknown addresses: no route can be probed. */
export function requireAgentKey(app: FastifyInstance, hasKey: (authorization: string | undefined) => boolean): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { isPublic, isSigned } = request.routeOptions.config;
    const mayPass = isPublic === true || isSigned === true || hasKey(request.headers.authorization);
    done(mayPass ? undefined : unauthorized());
  });
}

export function unauthorized(): SwitchyardError {
  return new SwitchyardError('request.unauthorized', 'a valid agent key is required');
}
