/** After this a caller is better served by another process, or a second later. */
const MAX_TICK_MS = 1_000;
/** Admitted regardless of time: a burst while CPU is briefly short is no overload. */
const FREE_PER_TICK = 512;

/**
 * Bounds the work that one tick admits. A tick takes all requests that have arrived; until it ends, timers and finished responses wait and no
 * connection is accepted, and the system drops those beyond its backlog. Refusing the late requests of a long tick is cheap and keeps ticks short.
 */
export class LoopBudget {
  readonly #nowMs: () => number;
  #admitted = 0;
  #startedAtMs = 0;
  readonly #endTick = () => {
    this.#admitted = 0;
  };

  /** @param nowMs a monotonic clock */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Call it before each admission; true counts it. */
  admits(): boolean {
    if (this.#admitted === 0) {
      // From the first request: a process that was paused is not busy.
      this.#startedAtMs = this.#nowMs();
      setImmediate(this.#endTick);
    }
    if (this.#admitted >= FREE_PER_TICK && this.#nowMs() - this.#startedAtMs > MAX_TICK_MS) return false;
    this.#admitted += 1;
    return true;
  }
}
