import type { FastifyInstance } from 'fastify';
import { nestingViolation } from '#shared/json-schema.ts';
import { invalidField } from './error-reply.ts';

/**
 * Bodies are JSON, whatever the route, and not nested deeper than anything sensible: what is would be stored by nobody, and walking it
 * would exhaust the stack. An empty one is no body, even if its sender announced JSON.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('text/plain');
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else {
      void parse(request, body, (error, value: unknown) => {
        const tooDeep = error === null ? nestingViolation(value) : null;
        if (tooDeep === null) done(error, value);
        else done(invalidField(tooDeep.path, tooDeep.message));
      });
    }
  });
}
