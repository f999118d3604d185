import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** Reads a body whose sender named no type as JSON: there is nothing else that it could be. A type that is named still has to be right. */
export function readUntypedBodiesAsJson(app: FastifyInstance): void {
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (headers['content-type'] === undefined && bodyIsAnnounced(headers)) headers['content-type'] = 'application/json';
    done();
  });
}

/** Whether the head of a request says that a body follows. */
export function bodyIsAnnounced(headers: IncomingHttpHeaders): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  return transfer !== undefined || (length !== undefined && length !== '0');
}

/**
 * Compressed bodies are not read: a few kilobytes of one may stand for gigabytes, and limits count what arrives.
 * @throws `request.unsupported_media` for any other encoding than `identity`
 */
export function refuseEncodedBody(headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new SwitchyardError('request.unsupported_media', 'the request has a Content-Encoding: send the body uncompressed, without this header');
}
