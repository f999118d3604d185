import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { readUntypedBodiesAsJson, refuseEncodedBody } from '#shared/http-server/json-bodies.ts';
import { markRequest } from '#shared/http-server/mark-requests.ts';
import { readBody } from '#shared/http-server/read-body.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { limits } from '../limits.ts';
import { invalidField } from './error-reply.ts';
import { LargeBodyQueue } from './large-body-queue.ts';

/**
 * Parses all bodies as JSON. Refuses deep nesting: walking it would exhaust the stack, and no store takes it. An empty body counts as none, even with a JSON
 * content type.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  const largeBodies = new LargeBodyQueue();
  app.removeContentTypeParser('text/plain');
  readUntypedBodiesAsJson(app);
  app.addContentTypeParser('application/json', (request, payload: Readable, done) => {
    refuseEncodedBody(request.headers);
    const grew = (bytes: number) => request.bodyShare?.grew(bytes);
    readBody({ headers: request.headers, payload, limitBytes: limits.bodyBytes, grew }, (failure, body) => {
      if (failure !== null) return done(failure);
      largeBodies.run(body.byteLength, () => {
        markRequest(request);
        if (body.byteLength === 0) return done(null, undefined);
        void parse(request, body.toString(), (error, value: unknown) => {
          const tooDeep = error === null ? nestingViolation(value) : null;
          if (tooDeep === null) done(error, value);
          else done(invalidField(tooDeep.path, tooDeep.message));
        });
      });
    });
  });
}
