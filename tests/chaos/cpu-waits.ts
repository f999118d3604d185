import { readFileSync } from 'node:fs';

interface Watched {
  role: string;
  index: number;
  pid: number;
  hasExited(): boolean;
}

interface Sample {
  atMs: number;
  /** Since the start of each process, by its name. */
  waitedMs: ReadonlyMap<string, number>;
}

const SAMPLE_EVERY_MS = 250;
/** Of a pass of some minutes; the oldest are dropped. */
const MOST_SAMPLES = 10_000;

/** How long the event loops of processes were runnable without a CPU, by the scheduler's statistics; not at all where the system has none. */
export class CpuWaits {
  readonly #timer: NodeJS.Timeout;
  #samples: Sample[] = [];

  constructor(processes: readonly Watched[]) {
    this.#timer = setInterval(() => this.#sample(processes), SAMPLE_EVERY_MS).unref();
  }

  /** The share of a time that a process has waited, 0 to 1, between the samples around it. @param name `role-index` @param fromMs by `Date.now()` */
  shareOf(name: string, fromMs: number, toMs: number): number {
    const first = this.#samples.findLast(({ atMs }) => atMs <= fromMs) ?? this.#samples[0];
    const last = this.#samples.find(({ atMs }) => atMs >= toMs) ?? this.#samples.at(-1);
    const [before, after] = [first?.waitedMs.get(name) ?? 0, last?.waitedMs.get(name) ?? 0];
    if (first === undefined || last === undefined || last.atMs <= first.atMs) return 0;
    return Math.max(0, after - before) / (last.atMs - first.atMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #sample(processes: readonly Watched[]): void {
    const running = processes.filter((one) => !one.hasExited());
    this.#samples.push({ atMs: Date.now(), waitedMs: new Map(running.map(({ role, index, pid }) => [`${role}-${index}`, waitedMsOf(pid)])) });
    if (this.#samples.length > MOST_SAMPLES) this.#samples = this.#samples.slice(MOST_SAMPLES / 2);
  }
}

/** Of the main thread, in which the event loop runs. */
function waitedMsOf(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waitedNs) / 1e6;
  } catch {
    return 0;
  }
}
