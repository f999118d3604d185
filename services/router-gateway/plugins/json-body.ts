import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { readUntypedBodiesAsJson, refuseEncodedBody } from '#shared/http-server/json-bodies.ts';
import { markRequest } from '#shared/http-server/mark-requests.ts';
import { readBody } from '#shared/http-server/read-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Empty before parsing and once released. */
    bodyText: string;
  }
}

const BYTE_ORDER_MARK = '\uFEFF';

/** Parses bodies as JSON, counting bytes as they arrive. A body that would set a prototype is refused as invalid JSON. */
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
      // Allowed before JSON, but not inside the call's JSON, which this text becomes a part of.
      request.bodyText = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
      void parse(request, request.bodyText, done);
    });
  });
}
