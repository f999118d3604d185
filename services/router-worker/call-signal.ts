/**
 * Says when a call is to end, and why. Each AbortSignal is one; what a worker makes for a call is not, because making it, and listening to
 * it, would cost more than all else that is kept of the call.
 */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** A signal, and who gives it. Listeners are told once, in their order, and are forgotten then. */
export class CallEnding implements CallSignal {
  #end: { reason: unknown } | null = null;
  #listeners: (() => void)[] = [];

  get aborted(): boolean {
    return this.#end !== null;
  }

  get reason(): unknown {
    return this.#end?.reason;
  }

  throwIfAborted(): void {
    if (this.#end !== null) throw this.#end.reason;
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((other) => other !== listener);
  }

  /** The first reason stands. */
  abort(reason: unknown): void {
    if (this.#end !== null) return;
    this.#end = { reason };
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** The same for what knows AbortSignals only. */
export function abortSignalOf(signal: CallSignal): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  return controller.signal;
}
