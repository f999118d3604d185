import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { ask, lastingConnection } from '../http/request.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { perThousand } from './closed-loop.mjs';
import { Failures } from './failures.mjs';
import { usageWindow } from './usage-window.mjs';

/** @typedef {import('./whole-requests.mjs').WholeLoad & Pick<import('./closed-loop.mjs').LoopLoad, 'times' | 'roots' | 'hooks'> & { perSecond: number }} SteadyLoad */

const EVERY_MS = 10;
/** A target that is slower than the rate gets no more at once: what is due then waits, and is counted. */
const MAX_IN_FLIGHT = 512;

/**
 * An open loop: requests begin at their times, whether earlier ones have been answered or not, each on a kept connection that is free. Their time counts from
 * when they were due.
 *
 * @param {SteadyLoad} load
 * @returns {Promise<import('./closed-loop.mjs').LoopFigures & { postponed: number }>} `postponed`: begun late, since too many were in flight
 */
export async function steadyRate({ address, request, isRight, perSecond, times, roots, hooks = {} }) {
  const failures = new Failures();
  /** @type {{ endedMs: number, tookMs: number }[]} */
  const done = [];
  /** @type {ReturnType<typeof lastingConnection>[]} */
  const free = [];
  /** @type {Set<Promise<void>>} */
  const inFlight = new Set();
  let postponed = 0;
  let isOver = false;
  const run = async (/** @type {number} */ dueMs) => {
    const lasting = free.pop() ?? lastingConnection(address);
    try {
      const { status, text } = await ask(await lasting.get(), request);
      if (status !== 200 || !isRight(text)) throw new Error(`answered ${status}: ${text}`);
      const endedMs = monotonicMs();
      done.push({ endedMs, tookMs: endedMs - dueMs });
    } catch (error) {
      failures.add(error);
    }
    free.push(lasting);
  };
  const begin = (/** @type {number} */ dueMs) => {
    const one = run(dueMs).finally(() => void inFlight.delete(one));
    inFlight.add(one);
  };
  const beginning = (async () => {
    const fromMs = monotonicMs();
    for (let begun = 0; !isOver; await delay(EVERY_MS)) {
      for (let due = Math.floor(((monotonicMs() - fromMs) / 1_000) * perSecond); begun < due; begun += 1) {
        if (inFlight.size >= MAX_IN_FLIGHT) {
          postponed += 1;
          break;
        }
        begin(fromMs + (begun / perSecond) * 1_000);
      }
    }
  })();
  const window = await usageWindow(roots, times, hooks).finally(() => {
    isOver = true;
  });
  await beginning;
  await Promise.all(inFlight);
  for (const { leave } of free) leave();
  const tookMs = done.flatMap((one) => (one.endedMs >= window.fromMs && one.endedMs < window.toMs ? [one.tookMs] : []));
  return {
    count: tookMs.length,
    perSecond: tookMs.length / window.seconds,
    cpuPerThousand: (window.cpuSeconds / tookMs.length) * 1_000,
    cpuByProcess: perThousand(window.cpuByProcess, tookMs.length),
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    failures,
    postponed,
  };
}
