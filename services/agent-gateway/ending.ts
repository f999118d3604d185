/** The end of a wait before its time, heard by the one who waits. An AbortController could say it too, and costs a poll several times as much. */
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

  /** Called once: at the end, or at once when that has been. Null: nobody waits any more. */
  set onEnd(listener: (() => void) | null) {
    this.#onEnd = listener;
    if (this.#isOver) listener?.();
  }
}
