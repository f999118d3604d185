import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FailBody } from './arriving-bodies.ts';
import { readBody } from './read-body.ts';

export interface FormBodyRules {
  limitBytes: number;
  /** As in `readBody`; absent: they are not counted. */
  grew?(request: FastifyRequest, bytes: number): void;
  reading?(request: FastifyRequest, fail: FailBody): (() => void) | undefined;
}

/** Reads the bodies of HTML forms as objects of texts, on the routes of a scope; of a repeated field, the last value. */
export function readFormBodies(scope: FastifyInstance, { limitBytes, grew, reading }: FormBodyRules): void {
  scope.addContentTypeParser('application/x-www-form-urlencoded', (request, payload: Readable, done) => {
    const counting = { grew: (bytes: number) => grew?.(request, bytes), reading: (fail: FailBody) => reading?.(request, fail) };
    readBody({ headers: request.headers, payload, limitBytes, ...counting }, (error, body) => {
      if (error === null) done(null, Object.fromEntries(new URLSearchParams(body.toString())));
      else done(error);
    });
  });
}
