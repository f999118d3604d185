import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** Treats a body without Content-Type as JSON, the only type accepted. An explicit type still has to match. */
export function readUntypedBodiesAsJson(app: FastifyInstance): void {
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (headers['content-type'] === undefined && bodyIsAnnounced(headers)) headers['content-type'] = 'application/json';
    done();
  });
}

export function bodyIsAnnounced(headers: IncomingHttpHeaders): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  return transfer !== undefined || (length !== undefined && length !== '0');
}

/**
 * Refuses compressed bodies: a few kilobytes may expand to gigabytes, and limits count bytes as received.
 * @throws `request.unsupported_media` for any encoding but `identity`
 */
export function refuseEncodedBody(headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new SwitchyardError('request.unsupported_media', 'the request has a Content-Encoding: send the body uncompressed, without this header');
}
