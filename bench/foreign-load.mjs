import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monotonicMs } from './monotonic.mjs';
import { readUsage, total } from './process-usage.mjs';

/** @typedef {import('./process-usage.mjs').Root} Root */

/** The kernel counts CPU in these, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;
/** Of the first line of /proc/stat: all but idle and waiting for a disk, and the guests that are in user time already. Stolen time is another machine's. */
const BUSY_FIELDS = /** @type {const} */ (['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal']);
const NOT_BUSY = new Set(['idle', 'iowait']);

/**
 * Watches what the machine does beside the bench.
 *
 * @param {readonly Root[]} roots of the target
 * @param {{ proc?: string, pid?: number, nowMs?: () => number }} [options] `pid` of the bench: all that it started counts as its own
 * @returns {() => { foreignCores: number, targetCores: number }} cores in use on average since the call: by processes that are not the bench's, and by
 *   the target
 */
export function watchMachine(roots, { proc = '/proc', pid = process.pid, nowMs = monotonicMs } = {}) {
  const read = () => ({
    atMs: nowMs(),
    busy: busySeconds(readFileSync(join(proc, 'stat'), 'utf8')),
    own: total(readUsage([{ name: 'bench', pid }], { proc, memory: false })).cpuSeconds,
    target: total(readUsage(roots, { proc, memory: false })).cpuSeconds,
  });
  const before = read();
  return () => {
    const after = read();
    const seconds = (after.atMs - before.atMs) / 1_000;
    const foreign = after.busy - before.busy - (after.own - before.own);
    return { foreignCores: Math.max(0, foreign / seconds), targetCores: (after.target - before.target) / seconds };
  };
}

/** @param {string} stat */
function busySeconds(stat) {
  const [, ...fields] = (stat.split('\n')[0] ?? '').trim().split(/\s+/);
  const ticks = BUSY_FIELDS.reduce((sum, name, index) => (NOT_BUSY.has(name) ? sum : sum + Number(fields[index] ?? 0)), 0);
  return ticks / TICKS_PER_SECOND;
}
