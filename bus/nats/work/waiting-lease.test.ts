import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WaitingLease } from './waiting-lease.ts';

const ACK_WAIT_MS = 6_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The lease of an item that was delivered some time ago. */
function waiting(working: () => Promise<void>, sinceMs = 0) {
  const beganAt = performance.now();
  const extendedAt: number[] = [];
  const item = {
    working: () => {
      extendedAt.push(performance.now() - beganAt);
      return working();
    },
  };
  return { lease: new WaitingLease(item, { deliveredAt: beganAt - sinceMs, ackWaitMs: ACK_WAIT_MS }), extendedAt };
}

describe('the lease of a queued item that waits to begin', () => {
  it('DESIGN 6 rule 4: is extended at each half of it, until the item begins', async () => {
    const { lease, extendedAt } = waiting(async () => {}, 1_000);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(extendedAt).toEqual([2_000, 5_000, 8_000]);
    expect(lease.ageMs).toBe(1_000);
    lease.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(extendedAt).toHaveLength(3);
  });

  it('is not extended again once that has failed, nor by a reply that comes when the item has begun', async () => {
    const failed = waiting(() => Promise.reject(new Error('lost')));
    const begun = waiting(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
    await vi.advanceTimersByTimeAsync(3_500);
    begun.lease.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([failed.extendedAt, begun.extendedAt]).toEqual([[3_000], [3_000]]);
    expect(failed.lease.ageMs).toBe(63_500);
  });
});
