import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Loaded into the services before their program. At the first SIGUSR2 the agent gateway begins to measure how long its event loop is blocked, and at the next one
 * it writes the longest block, in ms, to the file. What counts is the CPU that the loop's thread has used between two calls of a timer of 1 ms: a block is at most
 * as long. A delay would count the time in which other processes had the core, and the CPU of the process that of the collector's and the compiler's threads.
 */
const path = process.env.BENCH_LOOP_FILE ?? '';
const isMeasured = (process.argv[1] ?? '').includes('agent-gateway');
const EVERY_MS = 1;
const NANOS_PER_MS = 1_000_000;
/** Of the main thread; its first number are the nanoseconds that it has been on a CPU. */
const SCHEDULER_STATISTICS = `/proc/self/task/${process.pid}/schedstat`;
/** @type {{ longestNanos: number, timer: NodeJS.Timeout } | null} */
let measuring = null;

process.on('SIGUSR2', () => {
  if (!isMeasured) return;
  if (measuring === null) begin();
  else end(measuring);
});

function begin() {
  let lastNanos = cpuNanos();
  const state = {
    longestNanos: 0,
    timer: setInterval(() => {
      const nowNanos = cpuNanos();
      state.longestNanos = Math.max(state.longestNanos, nowNanos - lastNanos);
      lastNanos = nowNanos;
    }, EVERY_MS),
  };
  measuring = state;
}

/** @param {{ longestNanos: number, timer: NodeJS.Timeout }} state */
function end({ longestNanos, timer }) {
  clearInterval(timer);
  measuring = null;
  writeFileSync(path, String(longestNanos / NANOS_PER_MS));
}

function cpuNanos() {
  // The kernel brings the statistics of this thread up to date as it counts this.
  process.cpuUsage();
  return Number.parseInt(readFileSync(SCHEDULER_STATISTICS, 'latin1'), 10);
}
