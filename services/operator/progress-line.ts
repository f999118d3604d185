/** ESC [ K: the rest of the line is erased. */
const CLEAR = '\r\u001b[K';

/** One line of a terminal, which says what goes on and is written over by what comes next. */
export class ProgressLine {
  readonly #terminal: { columns: number; write(text: string): void } | null;
  #isShown = false;

  /** @param terminal null: there is none, so that nothing is written */
  constructor(terminal: { columns: number; write(text: string): void } | null) {
    this.#terminal = terminal;
  }

  /** A text that is longer than the line is cut: one that is broken could not be erased. */
  show(text: string): void {
    if (this.#terminal === null) return;
    const most = this.#terminal.columns - 1;
    this.#terminal.write(`${CLEAR}${text.length <= most ? text : `${text.slice(0, Math.max(most - 1, 0))}…`}`);
    this.#isShown = true;
  }

  /** Before anything else is written. */
  clear(): void {
    if (this.#isShown) this.#terminal?.write(CLEAR);
    this.#isShown = false;
  }
}
