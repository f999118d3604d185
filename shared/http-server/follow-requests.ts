import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DeferredTasks } from '../deferred-tasks.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { matchedRoute } from './matched-route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A probe: served without a key and while the server is not ready, and not counted. */
    isPublic?: boolean;
  }
}

/** What is noted of a broken connection waits: clients leave together, and the aborts of all their calls go first. */
const BEHIND_ABORTS_MS = 20;

export interface FollowOptions {
  /** Label `server` of the metrics. */
  server: 'router' | 'agent';
  metrics: Metrics;
  /** Called at the end of each response, probes included, and some milliseconds after a connection has broken. */
  onEnd?(request: FastifyRequest, reply: FastifyReply, durationMs: number): void;
}

/** Returns the request's id, and counts and times requests by the pattern of their route: unknown paths share one series. */
export function followRequests(app: FastifyInstance, { server, metrics, onEnd }: FollowOptions): void {
  const broken = new DeferredTasks(BEHIND_ABORTS_MS);
  // What is cut from then on is noted at once: the process ends soon.
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    broken.runAll();
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    const { method } = request;
    const { url: route = 'none', isPublic: isProbe } = matchedRoute(request);
    if (isProbe && onEnd === undefined) return done();
    const startedAtMs = performance.now();
    // Not `onResponse`: it does not run when the connection breaks.
    reply.raw.once('close', () => {
      const durationMs = performance.now() - startedAtMs;
      const note = () => {
        onEnd?.(request, reply, durationMs);
        if (isProbe) return;
        metrics.add('httpRequests', { server, method, route, status: String(reply.raw.statusCode) });
        metrics.observe('httpSeconds', { server, route }, durationMs / 1_000);
      };
      if (reply.raw.writableFinished || isClosing) note();
      else broken.defer(note);
    });
    done();
  });
}
