/** How long one tick may admit work. After it a caller is better served by another process, or a second later. */
const MAX_TICK_MS = 1_000;
/** Admitted per tick regardless of time: a burst on a machine that is briefly short of CPU is no overload. */
const FREE_PER_TICK = 512;

/**
 * Bounds the work that one tick of the event loop admits. A tick takes all requests that have arrived. Until it ends, timers and finished responses
 * wait, and new connections are not accepted; the system drops these when its backlog is full. Refusing late requests of a long tick is cheap and
 * keeps ticks short.
 */
export class LoopBudget {
  readonly #nowMs: () => number;
  #admitted = 0;
  #beganAtMs = 0;
  readonly #endTick = () => {
    this.#admitted = 0;
  };

  /** @param nowMs a monotonic clock */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Called before each admission; true counts it. */
  admits(): boolean {
    if (this.#admitted === 0) {
      // Starts at the first request, so that a process that was paused does not count as busy.
      this.#beganAtMs = this.#nowMs();
      setImmediate(this.#endTick);
    }
    if (this.#admitted >= FREE_PER_TICK && this.#nowMs() - this.#beganAtMs > MAX_TICK_MS) return false;
    this.#admitted += 1;
    return true;
  }
}
