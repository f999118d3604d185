import { monotonicMs } from '../monotonic.mjs';

/** @typedef {{ dueMs: number, act: (nowMs: number) => number | null }} Paced `act` says when it is due again; null: never */

/** As fine as Node's timers are. */
const TICK_MS = 1;

/**
 * Calls many things in time by one timer: a thousand streams with a timer each would make the upstream itself what is measured. What
 * is late is not moved: a stream that was held up catches up.
 */
export class Pace {
  /** @type {Set<Paced>} */
  #paced = new Set();
  /** @type {NodeJS.Timeout | null} */
  #timer = null;

  /** @param {Paced} paced */
  add(paced) {
    this.#paced.add(paced);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** @param {Paced} paced */
  remove(paced) {
    this.#paced.delete(paced);
    if (this.#paced.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #tick() {
    const nowMs = monotonicMs();
    for (const paced of this.#paced) {
      if (paced.dueMs > nowMs) continue;
      const nextMs = paced.act(nowMs);
      if (nextMs === null) this.remove(paced);
      else paced.dueMs = nextMs;
    }
  }
}
