/** Cancels one wait, with a single listener. An AbortController costs a poll several times as much. */
export class Cancellation {
  #isCancelled = false;
  #onCancel: (() => void) | null = null;

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#onCancel?.();
  }

  /** Called once: when it ends, or immediately when it has ended. Null removes the listener. */
  set onCancel(listener: (() => void) | null) {
    this.#onCancel = listener;
    if (this.#isCancelled) listener?.();
  }
}
