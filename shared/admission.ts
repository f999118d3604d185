/** Beyond this a caller is better served elsewhere, or later. */
const MOST_WAIT_MS = 5_000;
/** Admitted at any rate: a handful of long calls on a small deployment is no overload. */
const FREE_WAITING = 64;
/** A shorter interval says little about the rate of calls that take seconds; a longer one admits much before a backlog shows. */
export const SAMPLE_EVERY_MS = 500;
/** Window for the rate; also how long the last sample stays valid. */
const SAMPLES_RETAINED_MS = 10_000;

interface QueueSample {
  atMs: number;
  /** Not delivered yet. */
  waiting: number;
  /** Total so far. */
  dequeued: number;
}

/**
 * Admission control by queueing delay, estimated from samples of the queue. A bound on its length would not do: a thousand calls are nothing to one
 * deployment and an hour to another.
 *
 *   expected wait = (waiting at the last sample + admitted since − taken since, at the measured rate) / rate
 */
export class QueueingDelay {
  #samples: QueueSample[] = [];
  #admitted = 0;
  /** Once per sample; null: no backlog. */
  #backlog: { atMs: number; waiting: number; dequeuedPerMs: number } | null = null;

  isDue(nowMs: number): boolean {
    const last = this.#samples.at(-1);
    return last === undefined || nowMs - last.atMs >= SAMPLE_EVERY_MS;
  }

  sample(sample: QueueSample): void {
    const last = this.#samples.at(-1);
    // The count restarted: it is another queue.
    if (last !== undefined && sample.dequeued < last.dequeued) this.#samples = [];
    // Most work may never have been queued.
    if (sample.waiting === 0) this.#samples = [];
    this.#samples = [...this.#samples.filter(({ atMs }) => sample.atMs - atMs < SAMPLES_RETAINED_MS), sample];
    this.#admitted = 0;
    this.#backlog = backlogOf(this.#samples);
  }

  /** Call it before each admission; true counts it. */
  admits(nowMs: number): boolean {
    if (this.#isBehind(nowMs)) return false;
    this.#admitted += 1;
    return true;
  }

  #isBehind(nowMs: number): boolean {
    if (this.#backlog === null || nowMs - this.#backlog.atMs >= SAMPLES_RETAINED_MS) return false;
    const { atMs, dequeuedPerMs } = this.#backlog;
    const waiting = this.#backlog.waiting + this.#admitted - dequeuedPerMs * (nowMs - atMs);
    return waiting > FREE_WAITING && waiting > dequeuedPerMs * MOST_WAIT_MS;
  }
}

/** Null: nothing waits, or it has just arrived and may be taken at once: two samples are needed. */
function backlogOf(samples: readonly QueueSample[]): { atMs: number; waiting: number; dequeuedPerMs: number } | null {
  const [first] = samples;
  const [before, last] = samples.slice(-2);
  if (first === undefined || before === undefined || last === undefined) return null;
  if (before.waiting <= FREE_WAITING || last.waiting <= FREE_WAITING) return null;
  return { atMs: last.atMs, waiting: last.waiting, dequeuedPerMs: (last.dequeued - first.dequeued) / (last.atMs - first.atMs) };
}
