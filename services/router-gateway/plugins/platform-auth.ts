import { createHash, timingSafeEqual } from 'node:crypto';
import type { onRequestHookHandler } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;
/** Who comes with the platform's pair has this in place of a key's id; ids of keys hold no colon. */
const PLATFORM = 'platform:';

/** What agents show to their platform. */
export interface PlatformKeys {
  publicKey: string;
  secretKey: string;
}

/**
 * A hook that lets pass who has the platform's public and secret key as user and password, as agents do, and leaves everybody else to the
 * keys of the router.
 */
export function platformAuth(keys: PlatformKeys | null, otherwise: onRequestHookHandler): onRequestHookHandler {
  const pair = keys === null ? null : hashOf(`${keys.publicKey}:${keys.secretKey}`);
  return function asPlatform(request, reply, done) {
    const given = BASIC.exec(request.headers.authorization ?? '')?.[1];
    if (given === undefined) return otherwise.call(this, request, reply, done);
    // By their hashes, which have one length: how long that takes says nothing about the secret.
    if (pair === null || !timingSafeEqual(pair, hashOf(Buffer.from(given, 'base64').toString('utf8')))) {
      throw new SwitchyardError('request.unauthorized', 'The platform key is not valid');
    }
    request.keyId = PLATFORM;
    done();
  };
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
