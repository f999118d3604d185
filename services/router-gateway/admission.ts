import type { FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { BodyBudget } from '#shared/http-server/body-budget.ts';
import type { GatewayLimits } from './limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for what nobody has to be let in for. */
    admitted: AdmittedCall | null;
  }
}

/** A call that was let in. The last two are harmless when repeated. */
export interface AdmittedCall {
  /** So many bytes of its body have arrived. @throws `service.overloaded` when there is no room for them beside those of others */
  bodyGrew(bytes: number): void;
  /** Its body is no longer held by this process. */
  bodyDone(): void;
  /** Its connection is closed, or ready for another request. */
  leave(): void;
}

/** Counts what this process holds, says when it is too much, and, once closing, when nothing is left. */
export class Admission {
  readonly #limits: GatewayLimits;
  /** Made once: while there is too much they are thrown with nearly every request, and an error of one's own costs a stack. */
  readonly #errors: { closing: SwitchyardError; tooManyCalls: SwitchyardError };
  readonly #bodies: BodyBudget;
  readonly #emptied: (() => void)[] = [];
  #openCalls = 0;
  #closing = false;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
    const { bodyBytesInHand, openCalls, retryAfterMs } = limits;
    const comeBack = (code: 'service.not_ready' | 'service.overloaded', message: string) => new SwitchyardError(code, message, { details: { retryAfterMs } });
    this.#errors = {
      closing: comeBack('service.not_ready', 'this gateway is shutting down'),
      tooManyCalls: comeBack('service.overloaded', `this gateway already holds ${openCalls} calls`),
    };
    this.#bodies = new BodyBudget(bodyBytesInHand, comeBack('service.overloaded', 'this gateway is reading as many request bodies as it can hold'));
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** @throws `service.not_ready` while closing */
  assertOpen(): void {
    if (this.#closing) throw this.#errors.closing;
  }

  /**
   * @param announcedBytes the size of the body as far as it is known. It only tells whether to begin: what counts is what arrives, or a
   *   few connections that announce much and send nothing would keep everybody else out.
   * @throws `service.not_ready`, `service.overloaded`
   */
  enter(announcedBytes: number): AdmittedCall {
    this.assertOpen();
    if (this.#openCalls >= this.#limits.openCalls) throw this.#errors.tooManyCalls;
    const body = this.#bodies.open(announcedBytes);
    this.#openCalls += 1;
    let open = true;
    const leave = () => {
      if (!open) return;
      open = false;
      body.close();
      this.#openCalls -= 1;
      if (this.#openCalls === 0) for (const emptied of this.#emptied.splice(0)) emptied();
    };
    return { bodyGrew: body.grew, bodyDone: body.release, leave };
  }

  /** Lets a request in, until its answer is over. @param limitBytes of its body @throws as `enter` does */
  enterRequest(request: FastifyRequest, reply: FastifyReply, limitBytes: number): void {
    const call = this.enter(Math.min(Number(request.headers['content-length'] ?? 0), limitBytes));
    request.admitted = call;
    reply.raw.on('close', call.leave);
  }

  /** Lets nobody in any more. */
  close(): void {
    this.#closing = true;
  }

  /** Resolves to true when no call is open, to false when some still are after the time. */
  async empty(timeoutMs: number): Promise<boolean> {
    if (this.#openCalls === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const emptied = new Promise<boolean>((resolve) => this.#emptied.push(() => resolve(true)));
    const result = await Promise.race([emptied, late]);
    clearTimeout(timer);
    return result;
  }
}
