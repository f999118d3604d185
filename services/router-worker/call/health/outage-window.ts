/** Of the window of outages. */
const WINDOW_MS = 30_000;
const SLICES = 10;
const SLICE_MS = WINDOW_MS / SLICES;

/** Fewer attempts say nothing. */
const OUTAGE_SAMPLES = 10;
/** Of attempts that failed by the endpoint's fault. More is a significant outage: each failure costs its caller a second attempt. */
const OUTAGE_ERROR_RATE = 0.25;

/** Attempts of some 30 s, and how many of them failed. */
export interface Sums {
  samples: number;
  failures: number;
}

export function isOutage({ samples, failures }: Sums): boolean {
  return samples >= OUTAGE_SAMPLES && failures > OUTAGE_ERROR_RATE * samples;
}

/** Counts of the last 27 to 30 s. */
export class OutageWindow {
  readonly #numbers = new Float64Array(SLICES).fill(Number.NEGATIVE_INFINITY);
  readonly #samples = new Uint32Array(SLICES);
  readonly #failures = new Uint32Array(SLICES);

  add(isFailure: boolean, nowMs: number): void {
    const number = Math.floor(nowMs / SLICE_MS);
    const at = number % SLICES;
    if (this.#numbers[at] !== number) {
      this.#numbers[at] = number;
      this.#samples[at] = 0;
      this.#failures[at] = 0;
    }
    this.#samples[at] = (this.#samples[at] ?? 0) + 1;
    if (isFailure) this.#failures[at] = (this.#failures[at] ?? 0) + 1;
  }

  sums(nowMs: number): Sums {
    const oldest = Math.floor(nowMs / SLICE_MS) - SLICES;
    const sums = { samples: 0, failures: 0 };
    for (let at = 0; at < SLICES; at += 1) {
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
