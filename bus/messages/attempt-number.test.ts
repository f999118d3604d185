import { describe, expect, it } from 'vitest';
import { attemptOf, deliveryOf } from './attempt-number.ts';

describe('the number of an attempt', () => {
  it('grows with the delivery, whatever the tag is, and is another one for each delivery to a process', () => {
    expect(attemptOf(2, 0)).toBeGreaterThan(attemptOf(1, 999));
    const attempts = Array.from({ length: 1_000 }, () => attemptOf(3));
    expect(new Set(attempts).size).toBe(1_000);
    expect(new Set(attempts.map(deliveryOf))).toEqual(new Set([3]));
  });

  it('names the delivery, also that of a dispatch and of a worker of the release before', () => {
    expect([attemptOf(1, 0), attemptOf(1, 999), attemptOf(12, 5), 1, 7, 0].map(deliveryOf)).toEqual([1, 1, 12, 1, 7, 0]);
  });
});
