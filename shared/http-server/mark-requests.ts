import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type WorkMarks, workMarks } from '../telemetry/work-marks.ts';

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
export function markRequest({ method, routeOptions }: FastifyRequest, marks: WorkMarks = workMarks): void {
  marks.mark(routeOptions.url === undefined ? 'unknown route' : `${method} ${routeOptions.url}`);
}
