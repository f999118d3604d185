import { describe, expect, it } from 'vitest';
import { attemptOf, deliveryOf } from './attempt-number.ts';

describe('the number of an attempt', () => {
  it('grows with the delivery, whatever the worker is, and is another one for another worker', () => {
    expect(attemptOf(2, 0)).toBeGreaterThan(attemptOf(1, 999));
    expect(attemptOf(1, 17)).not.toBe(attemptOf(1, 18));
    expect(attemptOf(3)).toBe(attemptOf(3));
  });

  it('names the delivery, also that of a dispatch and of a worker of the release before', () => {
    expect([attemptOf(1, 0), attemptOf(1, 999), attemptOf(12, 5), 1, 7, 0].map(deliveryOf)).toEqual([1, 1, 12, 1, 7, 0]);
  });
});
