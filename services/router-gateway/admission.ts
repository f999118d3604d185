import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ArrivingBodies, type FailBody } from '#shared/http-server/arriving-bodies.ts';
import { BodyBudget } from '#shared/http-server/body-budget.ts';
import { InFlight } from '#shared/http-server/in-flight.ts';
import type { GatewayLimits } from './limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null on routes without admission. */
    admitted: AdmittedCall | null;
  }
}

/** An admitted call. All but `bodyGrew` are idempotent. */
export interface AdmittedCall {
  /** Its body is being read. @param fail ends that with an error @returns called when it has ended */
  reading(fail: FailBody): (() => void) | undefined;
  /** @throws `service.overloaded` when all bodies together exceed the byte budget */
  bodyGrew(bytes: number): void;
  /** Its body has arrived: from now on it is an open call. @throws `service.overloaded` */
  arrived(): void;
  bodyDone(): void;
  leave(): void;
}

/** What routes need of an admission: those of the router, or those of requests without a key. */
export interface RequestAdmission extends Pick<Admission, 'enterRequest'> {
  /** Its requests leave when their replies are handed over, in place of when their responses are closed. */
  readonly untilReply?: boolean;
}

/** Bounds the open calls and body bytes of this process. */
export class Admission {
  readonly #limits: GatewayLimits;
  /** Made once: under overload nearly every request throws one, and a new Error costs a stack trace. */
  readonly #errors: { closing: SwitchyardError; tooManyCalls: SwitchyardError };
  readonly #bodies: BodyBudget;
  readonly #arriving = new ArrivingBodies();
  /** With those whose bodies arrive. */
  readonly #calls = new InFlight();
  #openCalls = 0;
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

  /** Admits a call whose body has arrived, or that has none. @throws `service.not_ready`, `service.overloaded` */
  enter(announcedBytes: number): AdmittedCall {
    const call = this.#begin(announcedBytes, null);
    call.arrived();
    return call;
  }

  /**
   * Admits a request until its response is closed. It is an open call once its body has arrived (`arrived`): requests that announce one and do not send it
   * would keep all others out. A stop waits for it from now on.
   * @throws as `enter` does
   */
  enterRequest(request: FastifyRequest, reply: FastifyReply, limitBytes: number): void {
    const call = this.#begin(Math.min(Number(request.headers['content-length'] ?? 0), limitBytes), reply);
    request.admitted = call;
    reply.raw.on('close', call.leave);
  }

  /**
   * @param announcedBytes the announced size of the body, used only to refuse early. The budget counts bytes that arrived: otherwise a
   *   few connections that announce much and send nothing would keep all others out.
   */
  #begin(announcedBytes: number, reply: FastifyReply | null): AdmittedCall {
    this.assertOpen();
    this.#assertCapacity();
    const body = this.#bodies.open(announcedBytes);
    const leaveOnce = this.#calls.enter();
    let state: 'arriving' | 'open' | 'left' = 'arriving';
    let stopReading = () => {};
    return {
      reading: (fail) => {
        if (state !== 'arriving' || reply === null) return undefined;
        stopReading = this.#arriving.begin(reply, fail);
        return stopReading;
      },
      bodyGrew: body.grew,
      arrived: () => {
        if (state !== 'arriving') return;
        this.#assertCapacity();
        state = 'open';
        this.#openCalls += 1;
      },
      bodyDone: body.release,
      leave: () => {
        stopReading();
        if (state === 'left') return;
        if (state === 'open') this.#openCalls -= 1;
        state = 'left';
        body.close();
        leaveOnce();
      },
    };
  }

  #assertCapacity(): void {
    if (this.#openCalls >= this.#limits.openCalls) throw this.#errors.tooManyCalls;
  }

  /** Refuses all that is new, and what does not arrive in time. */
  close(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#arriving.failAllAfter(this.#limits.stopBodyMs, this.#errors.closing);
  }

  /** False after `timeoutMs` with calls still open. */
  drained(timeoutMs: number): Promise<boolean> {
    return this.#calls.whenIdle(timeoutMs);
  }
}

/** Admits the requests of a scope. @param check before it, which may refuse: false then */
export function admitRequests(
  scope: FastifyInstance,
  admission: RequestAdmission,
  limitBytes: number,
  check: (request: FastifyRequest, reply: FastifyReply) => boolean = () => true,
): void {
  // Before the body is read, so that refused requests cost no parsing.
  scope.addHook('onRequest', (request, reply, done) => {
    if (!check(request, reply)) return;
    admission.enterRequest(request, reply, limitBytes);
    done();
  });
  scope.addHook('preValidation', (request, _reply, done) => {
    request.admitted?.arrived();
    done();
  });
  if (admission.untilReply !== true) return;
  scope.addHook('onSend', (request, _reply, payload, done) => {
    request.admitted?.leave();
    done(null, payload);
  });
}

/** For the reader of their bodies. */
export const countedByAdmission = {
  grew: (request: FastifyRequest, bytes: number) => request.admitted?.bodyGrew(bytes),
  reading: (request: FastifyRequest, fail: FailBody) => request.admitted?.reading(fail),
};
