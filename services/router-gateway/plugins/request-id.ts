import type { IncomingMessage } from 'node:http';
import { ulid } from '#shared/ids.ts';

/** Safe in logs and in a header. */
const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/;

export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : `req_${ulid()}`;
}
