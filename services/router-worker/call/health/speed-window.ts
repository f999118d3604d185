import { BUCKETS, bucketOf } from '#shared/health/log-buckets.ts';

interface Slices {
  count: number;
  ms: number;
}

/** Of some 5 minutes, for decisions. */
const SPEED_SLICES: Slices = { count: 5, ms: 60_000 };
/** Of some 30 minutes, for lists of endpoints. */
export const LISTED_SLICES: Slices = { count: 6, ms: 300_000 };

interface Slice {
  number: number;
  counts: Uint32Array;
}

/** Samples of as many slices of time, of which the last one is not over, in logarithmic buckets. Takes memory only for the slices that have samples. */
export class SpeedWindow {
  readonly #lowest: number;
  readonly #each: Slices;
  readonly #slices: (Slice | undefined)[];

  constructor(lowest: number, slices: Slices = SPEED_SLICES) {
    this.#lowest = lowest;
    this.#each = slices;
    this.#slices = new Array(slices.count);
  }

  add(value: number, nowMs: number): void {
    const number = Math.floor(nowMs / this.#each.ms);
    const at = number % this.#each.count;
    let slice = this.#slices[at];
    if (slice === undefined || slice.number !== number) {
      slice = { number, counts: new Uint32Array(BUCKETS) };
      this.#slices[at] = slice;
    }
    const bucket = bucketOf(value, this.#lowest);
    slice.counts[bucket] = (slice.counts[bucket] ?? 0) + 1;
  }

  /** Adds its samples to `sums`. */
  addTo(sums: Uint32Array, nowMs: number): void {
    const oldest = Math.floor(nowMs / this.#each.ms) - this.#each.count;
    for (const slice of this.#slices) {
      if (slice === undefined || slice.number <= oldest) continue;
      for (let bucket = 0; bucket < BUCKETS; bucket += 1) sums[bucket] = (sums[bucket] ?? 0) + (slice.counts[bucket] ?? 0);
    }
  }
}
