/** Cancels one wait, with a single listener. An AbortController costs a poll several times as much. */
export class Ending {
  #isOver = false;
  #onEnd: (() => void) | null = null;

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd?.();
  }

  /** Called once: when it ends, or immediately when it has ended. Null removes the listener. */
  set onEnd(listener: (() => void) | null) {
    this.#onEnd = listener;
    if (this.#isOver) listener?.();
  }
}
