import { BUCKETS, bucketOf } from '#shared/health/log-buckets.ts';

const SLICE_MS = 60_000;
/** Together 5 minutes. */
const SLICES = 5;

interface Slice {
  number: number;
  counts: Uint32Array;
}

/** Samples of the last 4 to 5 minutes, in logarithmic buckets. Takes memory only for the minutes that have samples. */
export class SpeedWindow {
  readonly #lowest: number;
  readonly #slices: (Slice | undefined)[] = new Array(SLICES);

  constructor(lowest: number) {
    this.#lowest = lowest;
  }

  add(value: number, nowMs: number): void {
    const number = Math.floor(nowMs / SLICE_MS);
    const at = number % SLICES;
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
    const oldest = Math.floor(nowMs / SLICE_MS) - SLICES;
    for (const slice of this.#slices) {
      if (slice === undefined || slice.number <= oldest) continue;
      for (let bucket = 0; bucket < BUCKETS; bucket += 1) sums[bucket] = (sums[bucket] ?? 0) + (slice.counts[bucket] ?? 0);
    }
  }
}
