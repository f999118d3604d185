import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { itemEndReasons, RunningItems } from './running-items.ts';

describe('RunningItems', () => {
  let items: RunningItems;
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
    items = new RunningItems();
  });
  afterEach(() => vi.useRealTimers());

  it('ends an item at its deadline, and one that begins after it at once', () => {
    const item = items.begin(1, 10_000);
    vi.advanceTimersByTime(9_999);
    expect(item.cause).toBeNull();
    vi.advanceTimersByTime(1);
    expect(item.cause).toBe('deadline');
    expect(item.ended.reason).toMatchObject({ code: 'service.no_answer' });
    expect(items.begin(1, 0).cause).toBe('deadline');
  });

  it('ends an item with the reason of its kind', () => {
    const deadline = () => new SwitchyardError('router.timeout', 'late');
    expect(items.begin(1, 0, { ...itemEndReasons, deadline }).ended.reason).toMatchObject({ code: 'router.timeout' });
  });

  it('counts what is in flight, and does not end what was released', () => {
    const [released, other] = [items.begin(1, 1_000), items.begin(1, 1_000)];
    released.release();
    expect(items.count).toBe(1);
    vi.advanceTimersByTime(1_000);
    items.loseAllLeases();
    expect([released.cause, other.cause]).toEqual([null, 'deadline']);
  });

  it('retains the first cause, and still shows the loss of the lease', () => {
    const item = items.begin(1, 10_000);
    const { signal } = item;
    item.end('cancelled');
    items.loseAllLeases();
    expect([item.cause, item.isLeaseLost, signal.reason]).toEqual(['cancelled', true, item.ended.reason]);
    expect(item.leaseLost.reason).toMatchObject({ code: 'bus.lease_lost' });
  });

  it('aborts what waits for the loss of the lease', () => {
    const item = items.begin(1, 10_000);
    const { leaseLost } = item;
    expect(leaseLost.aborted).toBe(false);
    items.loseAllLeases();
    expect(leaseLost.aborted).toBe(true);
    expect(item.signal.reason).toMatchObject({ code: 'bus.lease_lost' });
  });

  it('ends a kept item whose lease is lost at its deadline, and then says so', () => {
    const item = items.begin(1, 1_000);
    const { leaseLost } = item;
    item.keep();
    item.end('lease-lost');
    expect([item.cause, item.isLeaseOver, item.isLeaseLost, leaseLost.aborted]).toEqual([null, true, false, false]);
    vi.advanceTimersByTime(1_000);
    expect([item.cause, item.isLeaseLost, leaseLost.aborted]).toEqual(['deadline', true, true]);
  });

  it('loses the lease of a kept item that is past its deadline at once, and of each when a drain takes too long', () => {
    const [late, lost, other] = [items.begin(1, 1_000), items.begin(1, 10_000), items.begin(1, 10_000)];
    for (const item of [late, lost, other]) item.keep();
    vi.advanceTimersByTime(1_000);
    late.end('lease-lost');
    lost.end('lease-lost');
    expect([late.isLeaseLost, lost.isLeaseLost, other.isLeaseLost]).toEqual([true, false, false]);
    items.loseAllLeases();
    expect([lost.cause, lost.isLeaseLost, other.cause, other.isLeaseLost]).toEqual(['lease-lost', true, 'lease-lost', true]);
  });

  it('does not cancel a protected item, whose deadline and lease hold', () => {
    const [settles, lost] = [items.begin(1, 1_000), items.begin(1, 10_000)];
    for (const item of [settles, lost]) {
      item.protect();
      item.end('cancelled');
      expect(item.isCancelled()).toBe(false);
    }
    vi.advanceTimersByTime(1_000);
    lost.end('lease-lost');
    expect([settles.cause, lost.cause]).toEqual(['deadline', 'lease-lost']);
  });
});
