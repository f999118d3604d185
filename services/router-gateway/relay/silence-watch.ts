import type { GatewayLimits } from '../limits.ts';

/** Tells when nothing was heard of a worker for a while; if nothing is heard then either, again after twice as long, and so on. */
export class SilenceWatch {
  readonly #limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>;
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout;
  #inARow = 0;

  constructor(limits: Pick<GatewayLimits, 'silenceMs' | 'silenceMaxMs'>, onSilence: () => void) {
    this.#limits = limits;
    this.#onSilence = onSilence;
    this.#timer = this.#arm();
  }

  /** How often silence was met since something was heard. */
  get inARow(): number {
    return this.#inARow;
  }

  /** It is called for each token, so the usual case costs next to nothing. */
  heard(): void {
    if (this.#inARow === 0) {
      this.#timer.refresh();
      return;
    }
    this.#inARow = 0;
    clearTimeout(this.#timer);
    this.#timer = this.#arm();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): NodeJS.Timeout {
    const { silenceMs, silenceMaxMs } = this.#limits;
    return setTimeout(
      () => {
        this.#inARow += 1;
        this.#timer = this.#arm();
        this.#onSilence();
      },
      Math.min(silenceMs * 2 ** this.#inARow, silenceMaxMs),
    );
  }
}
