import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type DispatchedItem, dispatchedItem } from '../../dispatched-item.ts';
import { DispatchedLeases } from './dispatched-leases.ts';

const ACK_WAIT_MS = 6_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Leases over connections whose replies are read when they are due. */
function opened() {
  const flush = vi.fn(async () => {});
  const leases = new DispatchedLeases({ isUp: true, main: { flush } });
  const add = (): DispatchedItem => {
    const item = dispatchedItem({
      kind: 'router.call',
      messageId: 'o1',
      body: '',
      publishedAtMs: 1,
      ackWaitMs: ACK_WAIT_MS,
      deliveredAt: performance.now(),
      assertOpen: () => {},
      confirmConnected: () => leases.confirm(),
      store: async () => {},
      stopping: new AbortController().signal,
      log: silentLog,
    });
    leases.add(item);
    return item;
  };
  return { leases, flush, add };
}

describe('leases of dispatched items', () => {
  it('DESIGN 6: are all extended by one reply of the broker, without a renewal of their own', async () => {
    const { leases, flush, add } = opened();
    const items = Array.from({ length: 100 }, add);
    await vi.advanceTimersByTimeAsync(10_000);

    expect(items.filter((item) => item.hasLease())).toHaveLength(100);
    expect(flush.mock.calls.length).toBeLessThanOrEqual(20);
    leases.stop();
  });

  it('end without replies', async () => {
    const { leases, flush, add } = opened();
    const item = add();
    flush.mockImplementation(() => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(4_000);
    expect(item.hasLease()).toBe(false);
    leases.stop();
  });

  it('are asked for by nothing while there are none', async () => {
    const { leases, flush } = opened();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(flush).not.toHaveBeenCalled();
    leases.stop();
  });
});
