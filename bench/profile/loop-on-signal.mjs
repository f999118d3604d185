import { writeFileSync } from 'node:fs';

/**
 * Loaded into the services before their program. At the first SIGUSR2 the agent gateway begins to measure how long its event loop is blocked, and at the next one
 * it writes the longest block, in ms, to the file. What counts is the CPU that the process has used between two calls of a timer of 1 ms: a block
 * is at most as long. It counts the collector's and the compiler's threads, too; a delay would count the time in which other processes had the core.
 */
const path = process.env.BENCH_LOOP_FILE ?? '';
const isMeasured = (process.argv[1] ?? '').includes('agent-gateway');
const EVERY_MS = 1;
const MICROS_PER_MS = 1_000;
/** @type {{ longestMicros: number, timer: NodeJS.Timeout } | null} */
let measuring = null;

process.on('SIGUSR2', () => {
  if (!isMeasured) return;
  if (measuring === null) begin();
  else end(measuring);
});

function begin() {
  let lastMicros = cpuMicros();
  const state = {
    longestMicros: 0,
    timer: setInterval(() => {
      const nowMicros = cpuMicros();
      state.longestMicros = Math.max(state.longestMicros, nowMicros - lastMicros);
      lastMicros = nowMicros;
    }, EVERY_MS),
  };
  measuring = state;
}

/** @param {{ longestMicros: number, timer: NodeJS.Timeout }} state */
function end({ longestMicros, timer }) {
  clearInterval(timer);
  measuring = null;
  writeFileSync(path, String(longestMicros / MICROS_PER_MS));
}

function cpuMicros() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
