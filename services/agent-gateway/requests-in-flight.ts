import type { FastifyInstance } from 'fastify';
import { InFlight } from '#shared/http-server/in-flight.ts';

/** Requests without a complete response, health probes aside. */
export class RequestsInFlight extends InFlight {
  follow(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      // A client that disconnected during another hook emits no further `close`. Not `onResponse`: it does not run when the connection breaks.
      if (request.routeOptions.config.isPublic !== true && !reply.raw.destroyed) reply.raw.once('close', this.enter());
      done();
    });
  }
}
