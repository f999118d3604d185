import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../monotonic.mjs';
import { readUsage, total } from '../process-usage.mjs';

/** @typedef {import('../process-usage.mjs').Root} Root */
/** @typedef {Record<string, number>} CpuByProcess seconds */
/** @typedef {{ onBegin?: () => void | Promise<void>, onEnd?: () => void | Promise<void> }} Hooks called at the begin and the end of the window, such as those of a profiler */
/** @typedef {{ seconds: number, cpuSeconds: number, cpuByProcess: CpuByProcess, fromMs: number, toMs: number }} Window */

const WARM_POLL_MS = 50;
/** A target that is too slow to be warm by then is measured as it is. */
const LONGEST_WARM_UP_MS = 60_000;

/**
 * Waits for the warm-up, then measures the usage of the target's processes over a window.
 *
 * @param {readonly Root[]} roots
 * @param {{ warmMs: number, measureMs: number, isWarm?: () => boolean }} times `isWarm`: from `warmMs` on the warm-up ends when it says so
 * @param {Hooks} [hooks]
 * @returns {Promise<Window>}
 */
export async function usageWindow(roots, { warmMs, measureMs, isWarm = () => true }, { onBegin, onEnd } = {}) {
  await delay(warmMs);
  for (const untilMs = monotonicMs() + LONGEST_WARM_UP_MS - warmMs; !isWarm() && monotonicMs() < untilMs; ) await delay(WARM_POLL_MS);
  await onBegin?.();
  const fromMs = monotonicMs();
  const before = readUsage(roots, { memory: false });
  await delay(measureMs);
  const after = readUsage(roots, { memory: false });
  const toMs = monotonicMs();
  await onEnd?.();
  const cpuByProcess = Object.fromEntries(after.map(({ name, cpuSeconds }, index) => [name, cpuSeconds - (before[index]?.cpuSeconds ?? 0)]));
  return { seconds: (toMs - fromMs) / 1_000, cpuSeconds: total(after).cpuSeconds - total(before).cpuSeconds, cpuByProcess, fromMs, toMs };
}
