import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GatewayLimits } from './limits.ts';

/** A call that was let in. Both are harmless when repeated. */
export interface AdmittedCall {
  /** Its body is no longer held by this process. */
  bodyDone(): void;
  /** Its connection is closed, or ready for another request. */
  leave(): void;
}

/** Counts what this process holds, says when it is too much, and, once closing, when nothing is left. */
export class Admission {
  readonly #limits: GatewayLimits;
  readonly #emptied: (() => void)[] = [];
  #openCalls = 0;
  #bodyBytes = 0;
  #closing = false;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** @throws `service.not_ready` while closing */
  assertOpen(): void {
    if (this.#closing) throw this.#comeBack('service.not_ready', 'this gateway is shutting down');
  }

  /** @param bodyBytes the announced size of the body. @throws `service.not_ready`, `service.overloaded` */
  enter(bodyBytes: number): AdmittedCall {
    this.assertOpen();
    const { openCalls, bodyBytesInHand } = this.#limits;
    if (this.#openCalls >= openCalls) throw this.#comeBack('service.overloaded', `this gateway already holds ${openCalls} calls`);
    // One body may always be read: else a bound below the largest body would refuse it for ever.
    if (this.#bodyBytes > 0 && this.#bodyBytes + bodyBytes > bodyBytesInHand) {
      throw this.#comeBack('service.overloaded', 'this gateway is reading as many request bodies as it can hold');
    }
    this.#openCalls += 1;
    this.#bodyBytes += bodyBytes;
    let held = bodyBytes;
    let open = true;
    const bodyDone = () => {
      this.#bodyBytes -= held;
      held = 0;
    };
    const leave = () => {
      if (!open) return;
      open = false;
      bodyDone();
      this.#openCalls -= 1;
      if (this.#openCalls === 0) for (const emptied of this.#emptied.splice(0)) emptied();
    };
    return { bodyDone, leave };
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

  #comeBack(code: 'service.not_ready' | 'service.overloaded', message: string): SwitchyardError {
    return new SwitchyardError(code, message, { details: { retryAfterMs: this.#limits.retryAfterMs } });
  }
}
