import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { FailBody } from '#shared/http-server/arriving-bodies.ts';
import { refuseEncodedBody } from '#shared/http-server/json-bodies.ts';
import { LargeBodyQueue } from '#shared/http-server/large-body-queue.ts';
import { markRequest } from '#shared/http-server/mark-requests.ts';
import { readBody } from '#shared/http-server/read-body.ts';
import { limits } from '../limits.ts';
import { countedBody } from './bounded-bodies.ts';

const BYTES = 'application/octet-stream';

/**
 * Gives the routes of this scope their bodies as they were sent, in a Buffer, whatever their type: a signature is of these bytes. The handlers of large bodies
 * wait for each other, since hashing and parsing one takes several milliseconds.
 */
export function acceptRawBodies(scope: FastifyInstance): void {
  const largeBodies = new LargeBodyQueue();
  scope.removeAllContentTypeParsers();
  // Also for a type that can not be parsed, and for none.
  scope.addHook('onRequest', ({ headers }, _reply, done) => {
    headers['content-type'] = BYTES;
    done();
  });
  scope.addContentTypeParser(BYTES, (request, payload: Readable, done) => {
    refuseEncodedBody(request.headers);
    const counting = { grew: (bytes: number) => countedBody.grew(request, bytes), reading: (fail: FailBody) => countedBody.reading(request, fail) };
    readBody({ headers: request.headers, payload, limitBytes: limits.bodyBytes, ...counting }, (error, body) => {
      if (error !== null) return done(error);
      largeBodies.run(body.byteLength, () => {
        markRequest(request);
        done(null, body);
      });
    });
  });
}
