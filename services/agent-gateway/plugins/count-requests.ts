import type { FastifyInstance } from 'fastify';
import type { Metrics } from '#shared/telemetry/metrics.ts';

/** Counts and times requests, health probes aside. Unknown routes share one series. */
export function countRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { method, routeOptions } = request;
    if (routeOptions.config.isPublic === true) return done();
    const route = routeOptions.url ?? 'none';
    const startedAtMs = performance.now();
    // Not `onResponse`: it does not run when the connection breaks.
    reply.raw.once('close', () => {
      metrics.add('httpRequests', { server: 'agent', method, route, status: String(reply.raw.statusCode) });
      metrics.observe('httpSeconds', { server: 'agent', route }, (performance.now() - startedAtMs) / 1_000);
    });
    done();
  });
}
