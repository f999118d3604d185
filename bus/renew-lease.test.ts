import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { WorkItem } from './bus.ts';
import { callLease, effectLease, renewLease } from './renew-lease.ts';

describe.each([
  ['a model call', callLease, 4_800],
  ['a tool or a callback', effectLease, 12_000],
])('the lease of %s', (_name, times, lostAfterMs) => {
  /** Of the lease, when its first extension is due, but for a little. */
  const leftMs = times.ackWaitMs - times.extendEveryMs - 100;
  let pausedMs = 0;

  beforeEach(() => {
    vi.useFakeTimers();
    pausedMs = 0;
    const faked = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => faked() + pausedMs);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** Until the next extension is due: then no timer fires for so long. */
  async function pauseAtExtension(ms: number) {
    await vi.advanceTimersByTimeAsync(times.extendEveryMs - 1);
    pausedMs += ms;
    await vi.advanceTimersByTimeAsync(1);
  }

  function retained(working: () => Promise<void>) {
    const onLost = vi.fn();
    const extended = vi.fn(working);
    const settled = async () => {};
    const item: WorkItem = { messageId: 'm', body: '', deliveryCount: 1, publishedAtMs: 0, ack: settled, nak: settled, term: settled, working: extended };
    return { onLost, extended, lease: renewLease(item, times, { onLost, deadlines: new Deadlines(), log: silentLog }) };
  }

  it('is lost at once when another worker has it', async () => {
    const { onLost } = retained(() => Promise.reject(new SwitchyardError('bus.lease_lost', 'lost')));
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('DESIGN 6 rule 4: is lost after four fifths of it when it can not be extended', async () => {
    const { onLost } = retained(() => Promise.reject(new Error('the broker is away')));
    await vi.advanceTimersByTimeAsync(lostAfterMs - 1);
    expect(onLost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('is lost when an extension is never answered, and no second one is requested meanwhile', async () => {
    const { onLost, extended } = retained(() => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(times.ackWaitMs);
    expect(onLost).toHaveBeenCalledTimes(1);
    expect(extended).toHaveBeenCalledTimes(1);
  });

  it('is held by a process that was paused and continues before its end: it is extended then', async () => {
    const { onLost, extended } = retained(async () => {});
    for (let pauses = 1; pauses <= 3; pauses += 1) {
      await pauseAtExtension(leftMs);
      expect(extended).toHaveBeenCalledTimes(pauses);
    }
    expect(onLost).not.toHaveBeenCalled();
  });

  it('is held by a process that was paused behind its request, and reads the reply after its timers were due', async () => {
    let answer = () => {};
    const { onLost, extended } = retained(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    await vi.advanceTimersByTimeAsync(lostAfterMs - 1);
    pausedMs += times.ackWaitMs - lostAfterMs - 10;
    await vi.advanceTimersByTimeAsync(1);
    answer();
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    expect(onLost).not.toHaveBeenCalled();
    expect(extended).toHaveBeenCalledTimes(3);
  });

  it('is asked for again by a process that was paused behind its request, and held until its end if the reply comes by then', async () => {
    const answers: (() => void)[] = [];
    const { onLost, extended } = retained(() => new Promise((resolve) => answers.push(resolve)));
    await vi.advanceTimersByTimeAsync(lostAfterMs - 1);
    pausedMs += 60;
    await vi.advanceTimersByTimeAsync(1);
    expect(extended).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(times.ackWaitMs - lostAfterMs - 100);
    expect(onLost).not.toHaveBeenCalled();
    for (const answer of answers) answer();
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('DESIGN 6 rule 4: is lost at once by a process that was paused behind its request, if its item counts a shorter lease', async () => {
    let isOver = false;
    const { onLost } = retained(() => (isOver ? Promise.reject(new SwitchyardError('bus.lease_lost', 'lost')) : new Promise(() => {})));
    await vi.advanceTimersByTimeAsync(lostAfterMs - 1);
    pausedMs += 60;
    isOver = true;
    await vi.advanceTimersByTimeAsync(1);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('DESIGN 6 rule 4: is lost at the end that its item counts, from the request of the last extension, though the reply was read late', async () => {
    const onLost = vi.fn();
    const leaseMs = (2 / 3) * times.ackWaitMs;
    let leaseEndsAt = performance.now() + leaseMs;
    let asked = 0;
    const working = async () => {
      asked += 1;
      const sentAt = performance.now();
      await new Promise((resolve) => setTimeout(resolve, asked === 1 ? 1_500 : 1e9));
      leaseEndsAt = sentAt + leaseMs;
    };
    const settled = async () => {};
    const item: WorkItem = { messageId: 'm', body: '', deliveryCount: 1, publishedAtMs: 0, ack: settled, nak: settled, term: settled, working };
    renewLease({ ...item, leaseEndsAt: () => leaseEndsAt }, times, { onLost, deadlines: new Deadlines(), log: silentLog });
    await vi.advanceTimersByTimeAsync(times.extendEveryMs + leaseMs - 100);
    expect(onLost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('DESIGN 6: is held behind its renewals by an item whose lease was extended meanwhile, and no longer', async () => {
    const onLost = vi.fn();
    let leaseEndsAt = performance.now() + 3 * times.ackWaitMs;
    const settled = async () => {};
    const working = () => new Promise<void>(() => {});
    const item: WorkItem = { messageId: 'm', body: '', deliveryCount: 1, publishedAtMs: 0, ack: settled, nak: settled, term: settled, working };
    renewLease({ ...item, leaseEndsAt: () => leaseEndsAt }, times, { onLost, deadlines: new Deadlines(), log: silentLog });
    await vi.advanceTimersByTimeAsync(2 * times.ackWaitMs);
    leaseEndsAt += times.ackWaitMs;
    await vi.advanceTimersByTimeAsync(2 * times.ackWaitMs - 1);
    expect(onLost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(10);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('DESIGN 6 rule 4: is lost at its end at the latest by a process that was paused and gets no reply', async () => {
    const { onLost } = retained(() => new Promise(() => {}));
    await pauseAtExtension(leftMs);
    expect(onLost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(times.ackWaitMs - times.extendEveryMs - leftMs + 10);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('is lost at once by a process that was paused until its end', async () => {
    const { onLost } = retained(() => new Promise(() => {}));
    await pauseAtExtension(times.ackWaitMs - times.extendEveryMs);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('is held as long as it is extended, also when one extension fails', async () => {
    let calls = 0;
    const { onLost } = retained(async () => {
      calls += 1;
      if (calls % 2 === 0) throw new Error('the broker is away');
    });
    await vi.advanceTimersByTimeAsync(120_000);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('is requested again soon when it could not be extended: little of it may be left', async () => {
    let isAway = true;
    const { extended } = retained(async () => {
      if (isAway) throw new Error('the broker is away');
    });
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    isAway = false;
    await vi.advanceTimersByTimeAsync(times.extendEveryMs / 4);
    expect(extended).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    expect(extended).toHaveBeenCalledTimes(3);
  });

  it('is not requested again when it is stopped while it could not be extended', async () => {
    const { onLost, extended, lease } = retained(() => Promise.reject(new Error('the broker is away')));
    await vi.advanceTimersByTimeAsync(times.extendEveryMs);
    lease.stop();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(extended).toHaveBeenCalledTimes(1);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('is not checked any more once it is stopped', async () => {
    const { onLost, extended, lease } = retained(async () => {});
    lease.stop();
    await vi.advanceTimersByTimeAsync(120_000);
    expect({ lost: onLost.mock.calls, extended: extended.mock.calls }).toEqual({ lost: [], extended: [] });
  });
});
