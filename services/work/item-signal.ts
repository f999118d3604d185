/** The part of AbortSignal that work uses. An AbortSignal per model call, and its listeners, would cost more than everything else kept of the call. */
export interface ItemSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** Controller and signal of one item. Listeners run once, in order, and are dropped. */
export class ItemAbortController implements ItemSignal {
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
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  abort(reason: unknown): void {
    if (this.#end !== null) return;
    this.#end = { reason };
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** For APIs that need an AbortSignal. */
export function abortSignalOf(signal: ItemSignal): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  return controller.signal;
}
