import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type WorkMarks, workMarks } from '../telemetry/work-marks.ts';

/** A blocked event loop delays the timer by as much. */
const SAMPLE_INTERVAL_MS = 250;
/** Health probes and heartbeats time out after some seconds. */
export const BLOCKED_MS = 1_000;

interface LoopTimes {
  nowMs(): number;
  /** Of the process since its start. */
  cpuMs(): number;
}

export interface LoopWatchdogDeps {
  log: Log;
  metrics: Metrics;
  marks?: WorkMarks;
  times?: LoopTimes;
}

/**
 * Logs and counts the kind of work that blocked the event loop for more than a second, once the loop is free again. A delay counts only with as
 * much CPU time, since a paused process is late too.
 */
export class LoopWatchdog {
  readonly #deps: LoopWatchdogDeps;
  readonly #marks: WorkMarks;
  readonly #times: LoopTimes;
  readonly #timer: NodeJS.Timeout;
  #sampledAtMs: number;
  #cpuMs: number;

  constructor(deps: LoopWatchdogDeps) {
    this.#deps = deps;
    this.#marks = deps.marks ?? workMarks;
    this.#times = deps.times ?? processTimes;
    this.#sampledAtMs = this.#times.nowMs();
    this.#cpuMs = this.#times.cpuMs();
    this.#marks.take();
    this.#timer = setInterval(() => this.sample(), SAMPLE_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Called by its timer. */
  sample(): void {
    const nowMs = this.#times.nowMs();
    const cpuMs = this.#times.cpuMs();
    const blockedMs = nowMs - this.#sampledAtMs - SAMPLE_INTERVAL_MS;
    const usedMs = cpuMs - this.#cpuMs;
    this.#sampledAtMs = nowMs;
    this.#cpuMs = cpuMs;
    const { kind, ms, lastMarked } = this.#marks.take();
    if (blockedMs < BLOCKED_MS || usedMs < BLOCKED_MS) return;
    this.#deps.metrics.add('loopHeld', { work: kind });
    const facts = { work: kind, held_ms: Math.round(blockedMs), work_ms: Math.round(ms), cpu_ms: Math.round(usedMs), last_marked: lastMarked };
    this.#deps.log.warn(facts, 'the event loop was blocked for more than a second');
  }
}

const processTimes: LoopTimes = {
  nowMs: () => performance.now(),
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
};
