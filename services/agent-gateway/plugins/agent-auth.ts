import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Served without a key, and while the gateway is not ready. */
    isPublic?: boolean;
  }
}

/** Tells whether an `Authorization` header carries the key. Takes as long for a wrong key as for the right one. */
export function bearerCheck(apiKey: string): (authorization: string | undefined) => boolean {
  const expected = createHash('sha256').update(apiKey, 'utf8').digest();
  return (authorization) => {
    const [, key] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
    // A header's characters are bytes, so a key beyond ASCII comes as the bytes of its UTF-8.
    return key !== undefined && timingSafeEqual(expected, createHash('sha256').update(key, 'latin1').digest());
  };
}

/** Refuses requests without the agent's key, unknown addresses among them: nobody learns what there is without it. */
export function requireAgentKey(app: FastifyInstance, carriesKey: (authorization: string | undefined) => boolean): void {
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.isPublic === true) return;
    if (!carriesKey(request.headers.authorization)) throw unauthorized();
  });
}

export function unauthorized(): SwitchyardError {
  return new SwitchyardError('request.unauthorized', 'a valid agent key is required');
}
