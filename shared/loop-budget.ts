/** How long one round of the event loop may go on letting work in. Past it whoever asks is better off asking elsewhere, or a second later. */
const MAX_TICK_MS = 1_000;
/** So many are let in whatever the time: a burst on a machine that is short of CPU for a moment is no overload. */
const FREE_PER_TICK = 512;

/**
 * Bounds what one round of the event loop lets in. A round takes all requests that have arrived, however many there are. Timers wait until
 * it is over, and so do answers that are ready, and connections that want to be accepted: these are lost when the system can't hold them
 * any more. Refusing what comes late in a long round costs little, so rounds stay short enough for everything else.
 */
export class LoopBudget {
  readonly #nowMs: () => number;
  #admitted = 0;
  #beganAtMs = 0;
  readonly #endTick = () => {
    this.#admitted = 0;
  };

  /** @param nowMs of any clock that never goes back */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Asked before something is let in, and counted as let in when it is true. */
  admits(): boolean {
    if (this.#admitted === 0) {
      // From the first that comes, so that a process that was stopped for a while is not taken for one that is busy.
      this.#beganAtMs = this.#nowMs();
      setImmediate(this.#endTick);
    }
    if (this.#admitted >= FREE_PER_TICK && this.#nowMs() - this.#beganAtMs > MAX_TICK_MS) return false;
    this.#admitted += 1;
    return true;
  }
}
