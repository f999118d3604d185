import type { FastifyInstance } from 'fastify';
import type { Metrics } from '#shared/telemetry/metrics.ts';

/** Counts what is answered, and how long it took, health probes aside. Requests for what is not there are one series, whatever they asked for. */
export function countRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { method, routeOptions } = request;
    if (routeOptions.config.isPublic === true) return done();
    const route = routeOptions.url ?? 'none';
    const beganAtMs = performance.now();
    // Not `onResponse`: a connection that breaks off never gets there.
    reply.raw.once('close', () => {
      metrics.add('httpRequests', { server: 'agent', method, route, status: String(reply.raw.statusCode) });
      metrics.observe('httpSeconds', { server: 'agent', route }, (performance.now() - beganAtMs) / 1_000);
    });
    done();
  });
}
