import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WorkItem } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { DEFAULT_LEASE, keepLease } from './lease.ts';

describe('keepLease', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function kept(working: () => Promise<void>) {
    const onLost = vi.fn();
    const extended = vi.fn(working);
    const settled = async () => {};
    const item: WorkItem = { messageId: 'm', body: '', delivery: 1, publishedAtMs: 0, ack: settled, nak: settled, term: settled, working: extended };
    return { onLost, extended, lease: keepLease(item, { ...DEFAULT_LEASE, onLost, log: silentLog }) };
  }

  it('gives up at once when the lease is somebody else’s', async () => {
    const { onLost } = kept(() => Promise.reject(new SwitchyardError('bus.lease_lost', 'lost')));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['can not be extended', () => Promise.reject(new Error('the broker is away'))],
    ['gets no answer', () => new Promise<void>(() => {})],
  ])('gives up after four fifths of a lease that %s', async (_, working) => {
    const { onLost } = kept(working);
    await vi.advanceTimersByTimeAsync(11_999);
    expect(onLost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('goes on as long as it is extended, also when one extension fails', async () => {
    let calls = 0;
    const { onLost } = kept(async () => {
      calls += 1;
      if (calls % 2 === 0) throw new Error('the broker is away');
    });
    await vi.advanceTimersByTimeAsync(120_000);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('does nothing any more once it is stopped', async () => {
    const { onLost, extended, lease } = kept(async () => {});
    lease.stop();
    await vi.advanceTimersByTimeAsync(120_000);
    expect({ lost: onLost.mock.calls, extended: extended.mock.calls }).toEqual({ lost: [], extended: [] });
  });
});
