import type { FastifyInstance } from 'fastify';

/** Reads the bodies of HTML forms as objects of texts, on the routes of a scope; of a repeated field, the last value. */
export function readFormBodies(scope: FastifyInstance, { limitBytes }: { limitBytes: number }): void {
  scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string', bodyLimit: limitBytes }, (_request, text, done) => {
    done(null, Object.fromEntries(new URLSearchParams(String(text))));
  });
}
