import { LOWEST_FIRST_TOKEN, LOWEST_THROUGHPUT, quantileOf, totalOf } from './log-buckets.ts';

/** `p90`: what nine of ten requests reached at least, so that of throughputs it is the lowest tenth, and of times the highest. */
export interface Percentiles {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

/** Fewer say less than the configuration does. */
const MIN_SAMPLES = 20;

/** Null where there are fewer than 20 samples. */
export interface MeasuredSpeed {
  tokensPerSecond: Percentiles | null;
  firstTokenSeconds: Percentiles | null;
  /** 95th percentile of the time to the first token. */
  firstTokenP95Seconds: number | null;
}

export const NOT_MEASURED: MeasuredSpeed = { tokensPerSecond: null, firstTokenSeconds: null, firstTokenP95Seconds: null };

export function measuredSpeedOf(firstToken: Uint32Array, throughput: Uint32Array): MeasuredSpeed {
  const times = totalOf(firstToken) < MIN_SAMPLES ? null : (share: number) => quantileOf(firstToken, LOWEST_FIRST_TOKEN, share) ?? 0;
  // Of throughputs the lowest tenth is the 90th percentile: what nine of ten calls reach.
  const rates = totalOf(throughput) < MIN_SAMPLES ? null : (share: number) => quantileOf(throughput, LOWEST_THROUGHPUT, 1 - share) ?? 0;
  return {
    tokensPerSecond: rates === null ? null : percentilesOf(rates),
    firstTokenSeconds: times === null ? null : percentilesOf(times),
    firstTokenP95Seconds: times === null ? null : times(0.95),
  };
}

function percentilesOf(at: (share: number) => number): Percentiles {
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
}
