import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { readUntypedBodiesAsJson, refuseEncodedBody } from '#shared/http-server/json-bodies.ts';
import { markRequest } from '#shared/http-server/mark-requests.ts';
import { readBody } from '#shared/http-server/read-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The JSON that the body was read from; empty before that, and once it is let go. */
    bodyText: string;
  }
}

const BYTE_ORDER_MARK = '\uFEFF';

/** Reads bodies as JSON, counted as they arrive. A body that would set a prototype is refused, as one that is no JSON. */
export function parseJsonBodies(app: FastifyInstance, limitBytes: number): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.decorateRequest('bodyText', '');
  readUntypedBodiesAsJson(app);
  app.addContentTypeParser('application/json', (request, payload: Readable, done) => {
    refuseEncodedBody(request.headers);
    const grew = (bytes: number) => request.admitted?.bodyGrew(bytes);
    readBody({ headers: request.headers, payload, limitBytes, grew }, (error, body) => {
      markRequest(request);
      if (error !== null) return done(error);
      const text = body.toString();
      // It is allowed before JSON, and would be none within the one that this becomes a part of.
      request.bodyText = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
      void parse(request, request.bodyText, done);
    });
  });
}
