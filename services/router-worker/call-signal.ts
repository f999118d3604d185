/**
 * When a call ends early, and why: the part of AbortSignal that is used here. A worker's calls use `CallEnding` instead of an AbortController, since creating
 * one and listening to it would cost more memory than everything else kept of a call.
 */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The controller and signal of one call. Listeners run once, in order of registration, and are dropped then. */
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

/** An AbortSignal that follows the call's signal, for APIs that take nothing else. */
export function abortSignalOf(signal: CallSignal): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  return controller.signal;
}
