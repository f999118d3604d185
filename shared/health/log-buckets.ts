/** Of one histogram. */
export const BUCKETS = 64;
/** Seconds; shorter times are alike. Together the buckets reach to 8 minutes. */
export const LOWEST_FIRST_TOKEN = 0.005;
/** Tokens per second. Together the buckets reach to 9,000. */
export const LOWEST_THROUGHPUT = 0.1;
/** Each bucket reaches so many times as far as the one before: a quantile is known to 10 %. */
const GROWTH = 1.2;
const LOG_GROWTH = Math.log(GROWTH);

/** Bucket 0 has all values up to `lowest`, the last bucket all above some 10^5 times that. */
export function bucketOf(value: number, lowest: number): number {
  if (!(value > lowest)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(Math.log(value / lowest) / LOG_GROWTH));
}

/** The geometric middle of a bucket. */
export function middleOf(bucket: number, lowest: number): number {
  return lowest * GROWTH ** (bucket - 0.5);
}

export function totalOf(counts: Uint32Array): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

/** The value that the share `quantile` of the samples does not exceed. Null: there are no samples. */
export function quantileOf(counts: Uint32Array, lowest: number, quantile: number): number | null {
  const total = totalOf(counts);
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(quantile * total));
  let seen = 0;
  let bucket = 0;
  for (; bucket < BUCKETS - 1; bucket += 1) {
    seen += counts[bucket] ?? 0;
    if (seen >= rank) break;
  }
  return middleOf(bucket, lowest);
}
