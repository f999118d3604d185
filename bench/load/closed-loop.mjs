import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { Failures } from './failures.mjs';
import { usageWindow } from './usage-window.mjs';

/**
 * @typedef {object} LoopLoad
 * @property {number} inFlight
 * @property {() => { run: () => Promise<void>, leave: () => void }} openSlot one of the concurrent loops
 * @property {{ warmMs: number, measureMs: number, warmCount?: number }} times `warmCount`: the warm-up lasts at least until so many have ended
 * @property {readonly import('../process-usage.mjs').Root[]} roots
 * @property {import('./usage-window.mjs').Hooks} [hooks]
 */

/**
 * @typedef {object} LoopFigures of what ended within the window
 * @property {number} count
 * @property {number} perSecond
 * @property {number} cpuPerThousand seconds of all processes
 * @property {Record<string, number>} cpuByProcess the same, by process
 * @property {number | null} p50Ms
 * @property {number | null} p99Ms
 * @property {Failures} failures
 */

/** Pause after a failure, so that a refusing target does not make the generator spin. */
const PAUSE_AFTER_FAILURE_MS = 100;

/**
 * A closed loop: `inFlight` slots, each of which repeats its work as soon as the last has ended.
 *
 * @param {LoopLoad} load
 * @returns {Promise<LoopFigures>}
 */
export async function closedLoop({ inFlight, openSlot, times, roots, hooks = {} }) {
  const failures = new Failures();
  /** @type {{ endedMs: number, tookMs: number }[]} */
  const done = [];
  let isOver = false;
  const slots = Array.from({ length: inFlight }, async () => {
    const slot = openSlot();
    while (!isOver) {
      const begunMs = monotonicMs();
      try {
        await slot.run();
        const endedMs = monotonicMs();
        done.push({ endedMs, tookMs: endedMs - begunMs });
      } catch (error) {
        failures.add(error);
        await delay(PAUSE_AFTER_FAILURE_MS);
      }
    }
    slot.leave();
  });
  const isWarm = () => done.length >= (times.warmCount ?? 0);
  const window = await usageWindow(roots, { ...times, isWarm }, hooks).finally(() => {
    isOver = true;
  });
  await Promise.all(slots);
  const tookMs = done.flatMap((one) => (one.endedMs >= window.fromMs && one.endedMs < window.toMs ? [one.tookMs] : []));
  return {
    count: tookMs.length,
    perSecond: tookMs.length / window.seconds,
    cpuPerThousand: (window.cpuSeconds / tookMs.length) * 1_000,
    cpuByProcess: perThousand(window.cpuByProcess, tookMs.length),
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    failures,
  };
}

/** @param {Record<string, number>} seconds by process @param {number} count of the work done in it */
export function perThousand(seconds, count) {
  return Object.fromEntries(Object.entries(seconds).map(([name, value]) => [name, (value / count) * 1_000]));
}
