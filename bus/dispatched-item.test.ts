import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type DispatchedItemOptions, dispatchedItem } from './dispatched-item.ts';
import { callLease, renewLease } from './renew-lease.ts';

const LEASE_MS = 60_000;

function take(changes: Partial<DispatchedItemOptions> = {}) {
  const stored: string[] = [];
  const item = dispatchedItem({
    kind: 'router.call',
    messageId: 'o1',
    body: 'body',
    publishedAtMs: 1,
    ackWaitMs: LEASE_MS,
    deliveredAt: performance.now(),
    assertOpen: () => {},
    confirmConnected: async () => performance.now(),
    store: async () => void stored.push('o1'),
    stopping: new AbortController().signal,
    log: silentLog,
    ...changes,
  });
  return { item, stored };
}

describe('a dispatched item', () => {
  it('is lost by a worker that was paused for longer than its lease, though it extends it', async () => {
    const { item } = take({ deliveredAt: performance.now() - LEASE_MS - 1 });
    await expect(item.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
  });

  it('is not extended while the bus is away, and is not lost for that at once', async () => {
    let isReached = false;
    const confirmConnected = async () => {
      if (!isReached) throw new SwitchyardError('service.unreachable', 'the bus is away');
      return performance.now();
    };
    const { item } = take({ confirmConnected });
    await expect(item.working()).rejects.toMatchObject({ code: 'service.unreachable' });
    isReached = true;
    await item.working();
  });

  it('is not lost when the bus is away for less than the lease, whenever that is', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const { extendEveryMs, ackWaitMs } = callLease;
      for (let awayAtMs = 0; awayAtMs < 2 * extendEveryMs; awayAtMs += 250) {
        const beganAt = performance.now();
        const backAt = beganAt + awayAtMs + 1_500;
        const confirmConnected = async () => {
          if (performance.now() >= beganAt + awayAtMs && performance.now() < backAt) throw new Error('the bus is away');
          return performance.now();
        };
        const onLost = vi.fn();
        const lease = renewLease(take({ confirmConnected, ackWaitMs }).item, callLease, { onLost, deadlines: new Deadlines(), log: silentLog });
        await vi.advanceTimersByTimeAsync(3 * ackWaitMs);
        lease.stop();
        expect(onLost.mock.calls, `away after ${awayAtMs} ms`).toEqual([]);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it('is lost when the bus answers only after its lease, as after a connection that was frozen', async () => {
    const askedAt = performance.now();
    const { item } = take({
      deliveredAt: askedAt - (2 / 3) * LEASE_MS + 30,
      confirmConnected: async () => {
        while (performance.now() < askedAt + 40) await nextTurn();
        return askedAt;
      },
    });
    await expect(item.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
  });

  it('DESIGN 6 rule 4: is extended by what the bus confirms while its lease runs, and not behind that', () => {
    vi.useFakeTimers();
    try {
      const { item } = take({ deliveredAt: performance.now() });
      vi.advanceTimersByTime(30_000);
      item.onConfirmed(performance.now() - 5_000);
      vi.advanceTimersByTime(34_000);
      expect(item.hasLease()).toBe(true);
      vi.advanceTimersByTime(2_000);
      item.onConfirmed(performance.now());
      expect(item.hasLease()).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  it('DESIGN 6 rule 4: is not extended beyond its publisher’s wait before a heartbeat has named it', () => {
    vi.useFakeTimers();
    try {
      const { item } = take({ deliveredAt: performance.now() - 30_000 });
      vi.advanceTimersByTime(9_000);
      item.onConfirmed(performance.now());
      expect(item.leaseEndsAt() - performance.now()).toBe(LEASE_MS * 0.9 - 39_000);
      vi.advanceTimersByTime(12_000);
      item.onConfirmed(performance.now());
      expect(item.leaseEndsAt() - performance.now()).toBe((2 / 3) * LEASE_MS);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is not stored by a worker whose lease is over: its publisher dispatches it again', async () => {
    const { item, stored } = take({ deliveredAt: performance.now() - LEASE_MS });
    await item.nak(0);
    expect(stored).toEqual([]);
  });

  it('is stored when it is nakked, once', async () => {
    const { item, stored } = take();
    await item.nak(0);
    await item.nak(0);
    await item.ack();
    expect(stored).toEqual(['o1']);
  });

  it('is stored at once when its consumer stops, whatever the delay of its nak', async () => {
    const { item, stored } = take({ stopping: AbortSignal.abort() });
    await item.nak(3_600_000);
    expect(stored).toEqual(['o1']);
  });

  it('can be nakked again when it could not be stored', async () => {
    let tries = 0;
    const store = async () => {
      tries += 1;
      if (tries === 1) throw new SwitchyardError('bus.full', 'the work queue is full');
    };
    const { item } = take({ store });
    await expect(item.nak(0)).rejects.toMatchObject({ code: 'bus.full' });
    await item.nak(0);
    expect(tries).toBe(2);
  });

  it('can not be settled once the bus is closed', async () => {
    const assertOpen = () => {
      throw new SwitchyardError('bus.closed', 'the bus is closed');
    };
    const { item, stored } = take({ assertOpen });
    for (const settle of [() => item.ack(), () => item.nak(0), () => item.term('never'), () => item.working()])
      await expect(settle()).rejects.toMatchObject({ code: 'bus.closed' });
    expect(stored).toEqual([]);
  });
});
