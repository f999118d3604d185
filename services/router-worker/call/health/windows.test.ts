import { describe, expect, it } from 'vitest';
import { BUCKETS, bucketOf, middleOf, quantileOf } from '#shared/health/log-buckets.ts';
import { isOutage, OUTAGE_SLICES, SampleWindow } from './outage-window.ts';
import { SpeedWindow } from './speed-window.ts';

const LOWEST = 0.005;

describe('logarithmic buckets', () => {
  it('know each value within their range to 10 %', () => {
    for (let value = 0.006; value < 400; value *= 1.037) {
      const known = middleOf(bucketOf(value, LOWEST), LOWEST);
      expect(Math.abs(known / value - 1), `${value} is known as ${known}`).toBeLessThan(0.1);
    }
  });

  it.each([
    [0, 0],
    [-1, 0],
    [Number.NaN, 0],
    [LOWEST, 0],
    [1e9, BUCKETS - 1],
    [Number.POSITIVE_INFINITY, BUCKETS - 1],
  ])('have a place for %d', (value, bucket) => {
    expect(bucketOf(value, LOWEST)).toBe(bucket);
  });

  it('give quantiles of the samples, and none without samples', () => {
    const counts = new Uint32Array(BUCKETS);
    expect(quantileOf(counts, LOWEST, 0.5)).toBeNull();
    for (let value = 1; value <= 100; value += 1) {
      const bucket = bucketOf(value / 100, LOWEST);
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    }
    for (const share of [0.1, 0.5, 0.75, 0.9, 0.95, 0.99]) {
      const found = quantileOf(counts, LOWEST, share) ?? 0;
      expect(Math.abs(found / share - 1), `${share}: ${found}`).toBeLessThan(0.2);
    }
  });
});

describe('the window of speeds', () => {
  it('has samples for 4 minutes at least, and for 5 at most', () => {
    const window = new SpeedWindow(LOWEST);
    const totalAt = (nowMs: number) => {
      const sums = new Uint32Array(BUCKETS);
      window.addTo(sums, nowMs);
      return sums.reduce((sum, count) => sum + count, 0);
    };
    window.add(1, 59_999);
    window.add(1, 60_000);
    expect([0, 240_000, 299_999, 300_000, 359_999, 360_000].map((afterMs) => totalAt(afterMs))).toEqual([2, 2, 2, 1, 1, 0]);
    window.add(1, 360_001);
    expect(totalAt(360_001)).toBe(1);
  });
});

describe('the window of outages', () => {
  it('counts attempts of 27 s at least, and of 30 s at most', () => {
    const window = new SampleWindow(OUTAGE_SLICES);
    window.add(true, 2_999);
    window.add(false, 3_000);
    expect([3_000, 29_999, 30_000, 32_999, 33_000].map((nowMs) => window.sums(nowMs))).toEqual([
      { samples: 2, failures: 1 },
      { samples: 2, failures: 1 },
      { samples: 1, failures: 0 },
      { samples: 1, failures: 0 },
      { samples: 0, failures: 0 },
    ]);
    window.add(true, 33_000);
    window.clear();
    expect(window.sums(33_000)).toEqual({ samples: 0, failures: 0 });
  });

  it.each([
    [9, 9, false],
    [10, 2, false],
    [10, 3, true],
    [100, 25, false],
    [100, 26, true],
    [0, 0, false],
  ])('of %i attempts with %i failures: an outage is %s', (samples, failures, expected) => {
    expect(isOutage({ samples, failures })).toBe(expected);
  });
});
