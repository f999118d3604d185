import type { FastifyInstance } from 'fastify';

/** Counts the requests that have no complete answer yet, health probes aside. */
export class RequestsInFlight {
  #count = 0;
  #waiting: (() => void)[] = [];

  constructor(app: FastifyInstance) {
    app.addHook('onRequest', (request, reply, done) => {
      // Who has left while another hook was busy will not say so again.
      if (request.routeOptions.config.isPublic === true || reply.raw.destroyed) return done();
      this.#count += 1;
      // Not `onResponse`: a connection that breaks off never gets there.
      reply.raw.once('close', () => {
        this.#count -= 1;
        if (this.#count > 0) return;
        for (const resolve of this.#waiting) resolve();
        this.#waiting = [];
      });
      done();
    });
  }

  /** Resolves once there is none, and at the latest after the time given. */
  async none(timeoutMs: number): Promise<void> {
    if (this.#count === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }
}
