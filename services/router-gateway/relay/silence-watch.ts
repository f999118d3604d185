import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import type { GatewayLimits } from '../limits.ts';

/** Calls `onSilence` after `silenceMs` without a frame or heartbeat; doubled each time, up to `silenceMaxMs`. */
export class SilenceWatch {
  readonly #limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>;
  readonly #onSilence: () => void;
  readonly #deadlines: Deadlines;
  readonly #deadline: Deadline;
  #inARow = 0;

  constructor(limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>, onSilence: () => void, deadlines: Deadlines) {
    this.#limits = limits;
    this.#onSilence = onSilence;
    this.#deadlines = deadlines;
    this.#deadline = deadlines.begin(this.#limitMs(), () => this.#met());
  }

  get inARow(): number {
    return this.#inARow;
  }

  /** Called per frame. */
  noteReceived(): void {
    this.#inARow = 0;
    this.#deadlines.restart(this.#deadline, this.#limitMs());
  }

  stop(): void {
    this.#deadlines.stop(this.#deadline);
  }

  #met(): void {
    this.#inARow += 1;
    this.#deadlines.restart(this.#deadline, this.#limitMs());
    this.#onSilence();
  }

  #limitMs(): number {
    const { silenceMs, silenceMaxMs } = this.#limits;
    return Math.min(silenceMs * 2 ** this.#inARow, silenceMaxMs);
  }
}
