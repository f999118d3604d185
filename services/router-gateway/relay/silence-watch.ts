import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import type { GatewayLimits } from '../limits.ts';

/** Calls `onSilence` after `silenceMs` without a frame or heartbeat; doubled each time, up to `silenceMaxMs`. */
export class SilenceWatch {
  readonly #limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>;
  readonly #onSilence: () => void;
  readonly #deadlines: Deadlines;
  readonly #deadline: Deadline;
  #consecutive = 0;

  constructor(limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>, onSilence: () => void, deadlines: Deadlines) {
    this.#limits = limits;
    this.#onSilence = onSilence;
    this.#deadlines = deadlines;
    this.#deadline = deadlines.begin(this.#limitMs(), () => this.#onExpiry());
  }

  get consecutive(): number {
    return this.#consecutive;
  }

  /** Called per frame. */
  noteReceived(): void {
    this.#consecutive = 0;
    this.#deadlines.restart(this.#deadline, this.#limits.silenceMs);
  }

  stop(): void {
    this.#deadlines.stop(this.#deadline);
  }

  #onExpiry(): void {
    this.#consecutive += 1;
    this.#deadlines.restart(this.#deadline, this.#limitMs());
    this.#onSilence();
  }

  #limitMs(): number {
    const { silenceMs, silenceMaxMs } = this.#limits;
    return Math.min(silenceMs * 2 ** this.#consecutive, silenceMaxMs);
  }
}
