interface Slices {
  count: number;
  ms: number;
}

/** Of some 30 s. */
export const OUTAGE_SLICES: Slices = { count: 10, ms: 3_000 };
/** Of some 30 minutes. */
export const UPTIME_SLICES: Slices = { count: 30, ms: 60_000 };

/** Of some 24 hours. */
export const DAY_SLICES: Slices = { count: 24, ms: 3_600_000 };

/** Fewer attempts say nothing. */
const OUTAGE_SAMPLES = 10;
/** Of attempts that failed by the endpoint's fault. More is a significant outage: each failure costs its caller a second attempt. */
const OUTAGE_ERROR_RATE = 0.25;

/** Attempts, and how many of them failed. */
export interface Sums {
  samples: number;
  failures: number;
}

export function isOutage({ samples, failures }: Sums): boolean {
  return samples >= OUTAGE_SAMPLES && failures > OUTAGE_ERROR_RATE * samples;
}

/** Counts of as many slices of time, of which the last one is not over. */
export class SampleWindow {
  readonly #slices: Slices;
  readonly #numbers: Float64Array;
  readonly #samples: Uint32Array;
  readonly #failures: Uint32Array;

  constructor(slices: Slices) {
    const { count } = slices;
    this.#slices = slices;
    this.#numbers = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
    this.#samples = new Uint32Array(count);
    this.#failures = new Uint32Array(count);
  }

  add(isFailure: boolean, nowMs: number): void {
    const number = Math.floor(nowMs / this.#slices.ms);
    const at = number % this.#slices.count;
    if (this.#numbers[at] !== number) {
      this.#numbers[at] = number;
      this.#samples[at] = 0;
      this.#failures[at] = 0;
    }
    this.#samples[at] = (this.#samples[at] ?? 0) + 1;
    if (isFailure) this.#failures[at] = (this.#failures[at] ?? 0) + 1;
  }

  /** @param last of the slices; absent: all */
  sums(nowMs: number, last = this.#slices.count): Sums {
    const oldest = Math.floor(nowMs / this.#slices.ms) - last;
    const sums = { samples: 0, failures: 0 };
    for (let at = 0; at < this.#slices.count; at += 1) {
      if ((this.#numbers[at] ?? 0) <= oldest) continue;
      sums.samples += this.#samples[at] ?? 0;
      sums.failures += this.#failures[at] ?? 0;
    }
    return sums;
  }

  clear(): void {
    this.#numbers.fill(Number.NEGATIVE_INFINITY);
  }
}
