import { createHash, timingSafeEqual } from 'node:crypto';
import type { onRequestHookHandler } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { errorReply } from './error-reply.ts';

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;
/** Key id of a platform's requests; ids of configured keys contain no colon. */
const PLATFORM = 'platform:';

export interface PlatformKeys {
  publicKey: string;
  secretKey: string;
}

/** Accepts the platform's keys as Basic user and password; `otherwise` handles other requests. */
export function platformAuth(keys: PlatformKeys | null, otherwise: onRequestHookHandler): onRequestHookHandler {
  const pair = keys === null ? null : hashOf(`${keys.publicKey}:${keys.secretKey}`);
  return function asPlatform(request, reply, done) {
    const given = BASIC.exec(request.headers.authorization ?? '')?.[1];
    if (given === undefined) return otherwise.call(this, request, reply, done);
    // Hashes have equal lengths, so the comparison takes constant time.
    if (pair === null || !timingSafeEqual(pair, hashOf(Buffer.from(given, 'base64').toString('utf8')))) {
      throw new SwitchyardError('request.unauthorized', 'The platform key is not valid');
    }
    request.keyId = PLATFORM;
    done();
  };
}

const refuse = preparedRefusal(
  new SwitchyardError('request.unauthorized', 'This address needs the platform key: send it as "Authorization: Basic <public key:secret key>"'),
  errorReply,
);

/** Refuses requests without the platform's keys. */
export const platformOnly: onRequestHookHandler = (_, reply) => refuse(reply);

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
