import type { FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';

/** @throws `request.unauthorized` for a request without a key of the router, such as the platform's */
export function callingKeyOf({ callerKey }: FastifyRequest): CallerKey {
  if (callerKey === null) throw new SwitchyardError('request.unauthorized', 'This request needs a key of the router');
  return callerKey;
}
