import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type WorkMarks, workMarks } from '../telemetry/work-marks.ts';
import { workKindOf } from './matched-route.ts';

/** Attributes the work of every request to its route. */
export function markRequests(app: FastifyInstance, marks: WorkMarks = workMarks): void {
  app.addHook('onRequest', (request, _reply, done) => {
    markRequest(request, marks);
    done();
  });
  // Again, since earlier hooks and reading the body end in later callbacks of the event loop.
  app.addHook('preValidation', (request, _reply, done) => {
    markRequest(request, marks);
    done();
  });
}

/** For code that continues a request after I/O. */
export function markRequest(request: FastifyRequest, marks: WorkMarks = workMarks): void {
  marks.mark(workKindOf(request));
}
