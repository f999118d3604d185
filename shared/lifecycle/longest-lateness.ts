const TICK_MS = 250;
const TICKS = 40;

/** How late this process's event loop was at most in the last ten seconds: for lines of the log about what came too late. */
export class LongestLateness {
  /** Of the last ticks, in milliseconds, as a ring. */
  readonly #lateMs = new Float64Array(TICKS);
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();
  readonly #nowMs: () => number;
  #tickedAt: number;
  #next = 0;

  /** @param nowMs monotonic; absent: `performance.now()` */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#tickedAt = nowMs();
  }

  /** With the tick that is late now, if one is. Whole milliseconds. */
  measureMs(): number {
    return Math.round(Math.max(this.#currentMs(), ...this.#lateMs));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #currentMs(): number {
    return Math.max(0, this.#nowMs() - this.#tickedAt - TICK_MS);
  }

  #tick(): void {
    this.#lateMs[this.#next] = this.#currentMs();
    this.#next = (this.#next + 1) % TICKS;
    this.#tickedAt = this.#nowMs();
  }
}

/** Of this process. */
export const longestLateness = new LongestLateness();
