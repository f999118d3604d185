import { describe, expect, it } from 'vitest';
import { median, quantile, slopeOf } from './figures.mjs';

describe('median', () => {
  it('is nothing where there is nothing', () => {
    expect(median([])).toBeNull();
  });

  it('is the value in the middle by size, not by place', () => {
    expect(median([100, 1, 20])).toBe(20);
    expect(median([9, 10, 100])).toBe(10); // as texts 100 would stand between them
  });

  it('is between the two in the middle of an even number', () => {
    expect(median([4, 1, 2, 100])).toBe(3);
  });

  it('leaves the list as it was', () => {
    const values = [3, 1, 2];
    median(values);

    expect(values).toEqual([3, 1, 2]);
  });
});

describe('quantile', () => {
  it('is nothing where there is nothing', () => {
    expect(quantile([], 0.99)).toBeNull();
  });

  it('shows the slow ones at the end of a long tail', () => {
    const values = Array.from({ length: 100 }, (_, index) => index + 1);

    expect([quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1)]).toEqual([50, 99, 100]);
  });

  it('is the slowest of a few', () => {
    expect(quantile([5, 1, 3], 0.99)).toBe(5);
  });
});

describe('the slope', () => {
  const lineOf = (slope: number, noise: number) =>
    Array.from({ length: 40 }, (_, x) => ({ x: x / 4, y: 200 + (slope * x) / 4 + (x % 2 === 0 ? noise : -noise) }));

  it('is nothing without two points at different times', () => {
    expect(slopeOf([])).toBeNull();
    expect(slopeOf([{ x: 1, y: 2 }])).toBeNull();
    expect(
      slopeOf([
        { x: 1, y: 2 },
        { x: 1, y: 3 },
      ]),
    ).toBeNull();
  });

  it('is that of the line through the noise of a heap', () => {
    expect(slopeOf(lineOf(3, 0))).toBeCloseTo(3, 9);
    expect(slopeOf(lineOf(3, 10))).toBeCloseTo(3, 0);
    expect(slopeOf(lineOf(-1, 0))).toBeCloseTo(-1, 9);
    expect(slopeOf(lineOf(0, 0))).toBe(0);
  });
});
