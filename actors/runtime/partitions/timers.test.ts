import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type DueTimer, Timers } from './timers.ts';

const RETRY = '-due';
/** What an immediate takes in simulated time. */
const BEHIND_SOCKETS_MS = 1;

describe('timers', () => {
  let rung: DueTimer[] = [];
  let timers: Timers;

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000 });
    rung = [];
    timers = new Timers({ nowMs: () => Date.now() }, (due) => rung.push(...due), RETRY);
  });

  afterEach(() => {
    timers.stop();
    vi.useRealTimers();
  });

  it('do not fire when they were disarmed, dropped or stopped', () => {
    timers.arm(timer('a', 1, 2_000));
    timers.arm(timer('b', 2, 2_000));
    timers.disarm('a');
    timers.forget(2);
    vi.advanceTimersByTime(5_000);
    expect(rung).toEqual([]);

    timers.arm(timer('c', 1, 7_000));
    timers.stop();
    vi.advanceTimersByTime(5_000);
    expect(rung).toEqual([]);
  });

  it('fire once each, when they are due, in whatever order they were armed', () => {
    timers.arm(timer('late', 1, 3_000));
    timers.arm(timer('soon', 1, 2_000));
    vi.advanceTimersByTime(1_000 + BEHIND_SOCKETS_MS);
    expect(rung.map(({ key }) => key)).toEqual(['soon']);
    vi.advanceTimersByTime(10_000);
    expect(rung.map(({ key }) => key)).toEqual(['soon', 'late']);
  });

  it('fire at once when they are overdue', () => {
    timers.arm(timer('overdue', 1, 0));
    vi.advanceTimersByTime(BEHIND_SOCKETS_MS);

    expect(rung).toEqual([{ partition: 1, key: 'overdue', command: '{}' }]);
  });

  it('fire behind what has arrived meanwhile: a result that is read in the same iteration of the loop comes first', async () => {
    vi.useRealTimers();
    const order: string[] = [];
    timers = new Timers({ nowMs: () => 1_000 }, () => order.push('timer'), RETRY);
    setTimeout(() => setImmediate(() => order.push('read')), 0);
    timers.arm(timer('overdue', 1, 0));
    await vi.waitFor(() => expect(order).toHaveLength(2), { interval: 1 });
    expect(order).toEqual(['read', 'timer']);
  });

  it('do not fire when they are disarmed between their time and then', () => {
    timers.arm(timer('a', 1, 2_000));
    timers.arm(timer('b', 1, 2_000));
    setTimeout(() => timers.disarm('a'), 1_000);
    vi.advanceTimersByTime(1_000 + BEHIND_SOCKETS_MS);
    expect(rung.map(({ key }) => key)).toEqual(['b']);
  });

  it('use the last time that a key was armed for', () => {
    timers.arm(timer('a', 1, 2_000));
    timers.arm(timer('a', 1, 9_000));
    vi.advanceTimersByTime(5_000);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(5_000);
    expect(rung).toHaveLength(1);
  });

  it('work beyond the longest timeout of the platform', () => {
    const inAMonthMs = 31 * 24 * 3_600_000;
    timers.arm(timer('far', 1, 1_000 + inAMonthMs));
    vi.advanceTimersByTime(inAMonthMs - 1);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(1 + BEHIND_SOCKETS_MS);
    expect(rung).toHaveLength(1);
  });
});

function timer(key: string, partition: number, dueAtMs: number) {
  return { key, partition, dueAtMs, command: '{}' };
}

describe('callbacks that wait for a retry', () => {
  it('are counted, all of them and those that come due by then', () => {
    const timers = new Timers({ nowMs: () => 1_000 }, () => {}, RETRY);
    const arm = (key: string, dueAtMs: number) => timers.arm({ partition: 1, key, command: '{}', dueAtMs });
    arm(`a${RETRY}`, 2_000);
    arm(`b${RETRY}`, 60_000);
    arm('c-overdue', 2_000);
    arm('d', 2_000);
    expect(timers.waitingRetries(5_000)).toEqual({ all: 2, due: 1 });
    timers.stop();
    expect(timers.waitingRetries(5_000)).toEqual({ all: 0, due: 0 });
  });

  it('count as due until the commit that opens their effect, so that a drain does not end between the two', async () => {
    vi.useFakeTimers();
    const timers = new Timers({ nowMs: () => Date.now() }, () => {}, RETRY);
    const key = `a${RETRY}`;
    timers.arm({ partition: 1, key, command: '{}', dueAtMs: Date.now() + 1_000 });
    timers.arm({ partition: 2, key: `b${RETRY}`, command: '{}', dueAtMs: Date.now() + 1_000 });
    await vi.advanceTimersByTimeAsync(1_000 + BEHIND_SOCKETS_MS);
    expect(timers.waitingRetries(Date.now())).toEqual({ all: 2, due: 2 });
    timers.disarm(key);
    expect(timers.waitingRetries(Date.now())).toEqual({ all: 1, due: 1 });
    timers.forget(2);
    expect(timers.waitingRetries(Date.now())).toEqual({ all: 0, due: 0 });
    vi.useRealTimers();
  });
});
