/** Tasks that nothing waits for, which run together, in their order, some milliseconds later. */
export class DeferredTasks {
  readonly #delayMs: number;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  defer(task: () => void): void {
    this.#waiting.push(task);
    this.#timer ??= setTimeout(() => this.runAll(), this.#delayMs);
  }

  /** Runs what waits now, without the delay. */
  runAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const task of this.#waiting.splice(0)) task();
  }
}
