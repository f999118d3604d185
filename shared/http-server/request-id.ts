import type { IncomingMessage } from 'node:http';
import { ulid } from '../ids.ts';

/** The id of a request: the caller's `x-request-id` if it is acceptable (safe in a log and a header), else a new one. */
export function requestIdsBy(acceptable: RegExp): (request: Pick<IncomingMessage, 'headers'>) => string {
  return ({ headers }) => {
    const given = headers['x-request-id'];
    return typeof given === 'string' && acceptable.test(given) ? given : `req_${ulid()}`;
  };
}
