import type { FastifyInstance } from 'fastify';

/** Counts requests without a complete response, health probes aside. */
export class RequestsInFlight {
  #count = 0;
  #waiting: (() => void)[] = [];

  constructor(app: FastifyInstance) {
    app.addHook('onRequest', (request, reply, done) => {
      // A client that disconnected during another hook emits no further `close`.
      if (request.routeOptions.config.isPublic === true || reply.raw.destroyed) return done();
      this.#count += 1;
      // Not `onResponse`: it does not run when the connection breaks.
      reply.raw.once('close', () => {
        this.#count -= 1;
        if (this.#count > 0) return;
        for (const resolve of this.#waiting) resolve();
        this.#waiting = [];
      });
      done();
    });
  }

  async whenIdle(timeoutMs: number): Promise<void> {
    if (this.#count === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }
}
