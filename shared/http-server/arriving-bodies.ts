import type { FastifyReply } from 'fastify';

/** Ends the reading of a body: its request is answered with the error, and what still arrives is dropped. */
export type FailBody = (error: Error) => void;

interface ArrivingBody {
  reply: FastifyReply;
  fail: FailBody;
  late: NodeJS.Timeout | undefined;
}

/** Requests whose bodies have not arrived, which their clients can keep so at no cost. */
export class ArrivingBodies {
  readonly #limit: { ms: number; error: Error } | null;
  /** In the order in which their reading began. */
  readonly #bodies = new Set<ArrivingBody>();

  /** @param limit the time of a body, and the error when it is over; null: that of the server alone */
  constructor(limit: { ms: number; error: Error } | null = null) {
    this.#limit = limit;
  }

  /** @returns ends it; idempotent. Call it when the body has arrived, and when its response is closed */
  begin(reply: FastifyReply, fail: FailBody): () => void {
    const limit = this.#limit;
    const body: ArrivingBody = { reply, fail, late: limit === null ? undefined : setTimeout(() => this.#fail(body, limit.error), limit.ms).unref() };
    this.#bodies.add(body);
    return () => void this.#end(body);
  }

  /** @returns false: none arrives */
  failOldest(error: Error): boolean {
    for (const body of this.#bodies) {
      this.#fail(body, error);
      return true;
    }
    return false;
  }

  /** At a stop: those that have not arrived `ms` later. They can be sent again, to another server. */
  failAllAfter(ms: number, error: Error): void {
    setTimeout(() => {
      while (this.failOldest(error));
    }, ms).unref();
  }

  #fail(body: ArrivingBody, error: Error): void {
    if (!this.#end(body)) return;
    // Else the connection would stay open for the rest of the body.
    body.reply.header('connection', 'close');
    body.fail(error);
  }

  #end(body: ArrivingBody): boolean {
    clearTimeout(body.late);
    return this.#bodies.delete(body);
  }
}
