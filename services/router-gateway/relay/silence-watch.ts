import type { Deadline, Deadlines } from '#shared/deadlines.ts';
import type { GatewayLimits } from '../limits.ts';

/** Tells when nothing was heard of a worker for a while; if nothing is heard then either, again after twice as long, and so on. */
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

  /** How often silence was met since something was heard. */
  get inARow(): number {
    return this.#inARow;
  }

  /** It is called for each token, so the usual case costs next to nothing. */
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
