/** The figures of a closed loop as those of a load. @param {import('./load/closed-loop.mjs').LoopFigures} figures @returns {import('./loads.mjs').Result} */
export function ofLoop({ count, perSecond, cpuPerThousand, p50Ms, p99Ms, cpuByProcess, failures }) {
  return { figures: { cpuPerThousand, perSecond, p50Ms, p99Ms }, cpuByProcess, count, failures };
}
