const TICK_MS = 250;
/** Of a tick; timers of a process that has its CPU are less late. */
const LATE_MS = 50;

/** How late this process's event loop was, in all: the time in which it read no socket when it could have. */
export class LoopLateness {
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();
  readonly #nowMs: () => number;
  #tickedAt: number;
  #totalMs = 0;

  /** @param nowMs monotonic; absent: `performance.now()` */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#tickedAt = nowMs();
  }

  /** Milliseconds since its start, of ticks that have ended. */
  get totalMs(): number {
    return this.#totalMs;
  }

  /** The same with the tick that is late now, if one is. */
  measureMs(): number {
    const lateMs = this.#nowMs() - this.#tickedAt - TICK_MS;
    return this.#totalMs + (lateMs > LATE_MS ? lateMs : 0);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    this.#totalMs = this.measureMs();
    this.#tickedAt = this.#nowMs();
  }
}
