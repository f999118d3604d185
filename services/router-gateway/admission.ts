import type { FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { BodyBudget } from '#shared/http-server/body-budget.ts';
import { InFlight } from '#shared/http-server/in-flight.ts';
import type { GatewayLimits } from './limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null on routes without admission. */
    admitted: AdmittedCall | null;
  }
}

/** An admitted call. `bodyDone` and `leave` are idempotent. */
export interface AdmittedCall {
  /** @throws `service.overloaded` when all bodies together exceed the byte budget */
  bodyGrew(bytes: number): void;
  bodyDone(): void;
  leave(): void;
}

/** Bounds the open calls and body bytes of this process. */
export class Admission {
  readonly #limits: GatewayLimits;
  /** Made once: under overload nearly every request throws one, and a new Error costs a stack trace. */
  readonly #errors: { closing: SwitchyardError; tooManyCalls: SwitchyardError };
  readonly #bodies: BodyBudget;
  readonly #openCalls = new InFlight();
  #closing = false;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
    const { bufferedBodyBytes, openCalls, retryAfterMs } = limits;
    const retryableError = (code: 'service.not_ready' | 'service.overloaded', message: string) =>
      new SwitchyardError(code, message, { details: { retryAfterMs } });
    this.#errors = {
      closing: retryableError('service.not_ready', 'this gateway is shutting down'),
      tooManyCalls: retryableError('service.overloaded', `this gateway already has ${openCalls} open calls`),
    };
    this.#bodies = new BodyBudget(bufferedBodyBytes, retryableError('service.overloaded', 'the byte budget of this gateway for request bodies is used up'));
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** @throws `service.not_ready` while closing */
  assertOpen(): void {
    if (this.#closing) throw this.#errors.closing;
  }

  /**
   * @param announcedBytes the announced size of the body, used only to refuse early. The budget counts bytes that arrived: otherwise a
   *   few connections that announce much and send nothing would keep all others out.
   * @throws `service.not_ready`, `service.overloaded`
   */
  enter(announcedBytes: number): AdmittedCall {
    this.assertOpen();
    if (this.#openCalls.count >= this.#limits.openCalls) throw this.#errors.tooManyCalls;
    const body = this.#bodies.open(announcedBytes);
    const leaveOnce = this.#openCalls.enter();
    let open = true;
    const leave = () => {
      if (!open) return;
      open = false;
      body.close();
      leaveOnce();
    };
    return { bodyGrew: body.grew, bodyDone: body.release, leave };
  }

  /** Admits a request until its response is closed. @throws as `enter` does */
  enterRequest(request: FastifyRequest, reply: FastifyReply, limitBytes: number): void {
    const call = this.enter(Math.min(Number(request.headers['content-length'] ?? 0), limitBytes));
    request.admitted = call;
    reply.raw.on('close', call.leave);
  }

  close(): void {
    this.#closing = true;
  }

  /** False after `timeoutMs` with calls still open. */
  drained(timeoutMs: number): Promise<boolean> {
    return this.#openCalls.whenIdle(timeoutMs);
  }
}
