import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import type { LoopLateness } from '#shared/lifecycle/loop-lateness.ts';
import type { GatewayLimits } from '../limits.ts';

type Lateness = Pick<LoopLateness, 'totalMs' | 'measureMs'>;

/**
 * Calls `onSilence` after `silenceMs` without a frame or heartbeat; doubled each time, up to `silenceMaxMs`. Time by which this process's own event loop was late
 * does not count: what came in it is unread yet, behind all that other sockets brought.
 */
export class SilenceWatch {
  readonly #limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>;
  readonly #onSilence: () => void;
  readonly #deadlines: Deadlines;
  readonly #lateness: Lateness;
  readonly #deadline: Deadline;
  #consecutive = 0;
  /** Of the process, when the silence began, or when it was last allowed for. */
  #countedLateMs: number;

  constructor(
    limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>,
    onSilence: () => void,
    { deadlines, lateness }: { deadlines: Deadlines; lateness: Lateness },
  ) {
    this.#limits = limits;
    this.#onSilence = onSilence;
    this.#deadlines = deadlines;
    this.#lateness = lateness;
    this.#countedLateMs = lateness.totalMs;
    this.#deadline = deadlines.begin(this.#limitMs(), () => this.#onExpiry());
  }

  get consecutive(): number {
    return this.#consecutive;
  }

  /** Called per frame. */
  noteReceived(): void {
    this.#consecutive = 0;
    this.#countedLateMs = this.#lateness.totalMs;
    this.#deadlines.restart(this.#deadline, this.#limits.silenceMs);
  }

  stop(): void {
    this.#deadlines.stop(this.#deadline);
  }

  #onExpiry(): void {
    const lateMs = this.#lateness.measureMs() - this.#countedLateMs;
    this.#countedLateMs += lateMs;
    // What this expiry was late by has been waited for already.
    const leftMs = lateMs - (performance.now() - this.#deadline.at);
    if (leftMs > 0) {
      this.#deadlines.restart(this.#deadline, leftMs);
      return;
    }
    this.#consecutive += 1;
    this.#deadlines.restart(this.#deadline, this.#limitMs());
    this.#onSilence();
  }

  #limitMs(): number {
    const { silenceMs, silenceMaxMs } = this.#limits;
    return Math.min(silenceMs * 2 ** this.#consecutive, silenceMaxMs);
  }
}
