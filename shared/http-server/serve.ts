import type { FastifyInstance, FastifyServerFactory } from 'fastify';
import type { PublicPort } from './open-public-port.ts';

const CUT_EVERY_MS = 10;

export interface ServeOptions {
  host: string;
  port: number;
  /** Length of the system's accept queue. */
  backlog: number;
  /** Opens nothing that `close` of the app or `release` would not close. */
  build(serverFactory: FastifyServerFactory): FastifyInstance;
  /** Ends when requests in flight are over, or their time is. The port stays open meanwhile: probes see the drain, new requests are refused. */
  drain(): Promise<void>;
  /** From the end of the drain until connections are cut. */
  cutAfterMs: number;
  /** After the app is closed, and when the start fails. */
  release?(): Promise<void>;
}

export interface Serving {
  /** With the actual port. */
  url: string;
  stop(): Promise<void>;
}

/** Builds the app, and serves with it on a port that already listens, which is closed if the start fails. @throws as `build` and `listen` do */
export async function serve(opened: PublicPort, { host, port, backlog, build, drain, cutAfterMs, release }: ServeOptions): Promise<Serving> {
  let app: FastifyInstance | null = null;
  try {
    app = build(opened.serverFactory);
    await app.listen({ host, port, backlog });
  } catch (error) {
    await app?.close();
    await opened.close();
    await release?.();
    throw error;
  }
  const serving = app;
  let stopping: Promise<void> | null = null;
  const stop = async () => {
    await drain();
    await closeApp(serving, cutAfterMs);
    await release?.();
  };
  return {
    url: opened.url,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/**
 * Node closes idle connections itself, but not those that never sent a byte, which browsers open in advance: they would keep the process running.
 * Connections may arrive until the server stops listening, so the cut is repeated.
 */
export async function closeApp(app: FastifyInstance, cutAfterMs: number): Promise<void> {
  const cut = () => app.server.closeAllConnections();
  let repeated: NodeJS.Timeout | undefined;
  const first = setTimeout(() => {
    cut();
    repeated = setInterval(cut, CUT_EVERY_MS);
  }, cutAfterMs);
  try {
    await app.close();
  } finally {
    clearTimeout(first);
    clearInterval(repeated);
  }
}
