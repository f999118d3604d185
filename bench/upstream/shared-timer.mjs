import { monotonicMs } from '../monotonic.mjs';

/** @typedef {{ dueMs: number, run: (nowMs: number) => number | null }} Scheduled `run` returns when it is due again; null: never */

/** The resolution of Node's timers. */
const TICK_MS = 1;

/**
 * One timer for many scheduled callbacks: a thousand streams with a timer each would make the upstream the bottleneck. What
 * is late is not rescheduled: a delayed stream catches up.
 */
export class SharedTimer {
  /** @type {Set<Scheduled>} */
  #scheduled = new Set();
  /** @type {NodeJS.Timeout | null} */
  #timer = null;

  /** @param {Scheduled} scheduled */
  add(scheduled) {
    this.#scheduled.add(scheduled);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** @param {Scheduled} scheduled */
  remove(scheduled) {
    this.#scheduled.delete(scheduled);
    if (this.#scheduled.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #tick() {
    const nowMs = monotonicMs();
    for (const scheduled of this.#scheduled) {
      if (scheduled.dueMs > nowMs) continue;
      const nextMs = scheduled.run(nowMs);
      if (nextMs === null) this.remove(scheduled);
      else scheduled.dueMs = nextMs;
    }
  }
}
