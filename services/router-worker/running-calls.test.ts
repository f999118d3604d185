import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NoticeBoard } from '#bus/bus.ts';
import { RunningCalls } from './running-calls.ts';

describe('RunningCalls', () => {
  let deliver: (subject: string, body: string) => void;
  let running: RunningCalls;
  let nowMs = 1_000_000;

  beforeEach(() => {
    vi.useFakeTimers();
    nowMs = 1_000_000;
    const notices: NoticeBoard = {
      publish: () => {},
      subscribe(pattern, handler) {
        expect(pattern).toBe('ctl.*');
        deliver = handler;
        return { stop: async () => {}, ready: async () => {} };
      },
    };
    running = new RunningCalls({ notices, clock: { nowMs: () => nowMs } });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const begin = (callId: string) => running.begin(callId, nowMs + 10_000);
  const abort = (callId: string) => deliver(`ctl.${callId}`, '{"abort":true}');

  it.each(['', 'nonsense', '{}', '{"abort":false}', 'null'])('takes no notice of "%s"', (body) => {
    const call = begin('gen-1');
    deliver('ctl.gen-1', body);
    expect(call.cause()).toBeNull();
  });

  it('aborts the call that is named, and no other', () => {
    const [one, two] = [begin('gen-1'), begin('gen-2')];
    abort('gen-1');
    expect([one.cause(), two.cause()]).toEqual(['cancelled', null]);
    expect(one.signal.reason).toMatchObject({ code: 'router.cancelled' });
  });

  it('remembers an abort for a call that has not begun, for a minute', () => {
    abort('gen-1');
    nowMs += 59_999;
    expect(begin('gen-1').signal.aborted).toBe(true);
    nowMs += 1;
    expect(begin('gen-1').signal.aborted).toBe(false);
  });

  it('remembers a bounded number of aborts: the oldest are forgotten', () => {
    for (let place = 0; place <= 10_000; place += 1) abort(`gen-${place}`);
    expect(begin('gen-0').signal.aborted).toBe(false);
    expect(begin('gen-1').signal.aborted).toBe(true);
  });

  it('has nothing to abort once a call is over', () => {
    const call = begin('gen-1');
    call.forget();
    abort('gen-1');
    expect(call.cause()).toBeNull();
  });

  it('ends a call at its deadline, and one that begins after it at once', () => {
    const call = begin('gen-1');
    vi.advanceTimersByTime(9_999);
    expect(call.cause()).toBeNull();
    vi.advanceTimersByTime(1);
    expect(call.cause()).toBe('deadline');
    expect(call.signal.reason).toMatchObject({ code: 'router.timeout' });
    expect(running.begin('gen-2', nowMs).cause()).toBe('deadline');
  });

  it('lets the first cause stand', () => {
    const call = begin('gen-1');
    running.abandonAll();
    abort('gen-1');
    expect(call.cause()).toBe('abandoned');
  });

  it('aborts both when the same call runs twice for a moment', () => {
    const [first, second] = [begin('gen-1'), begin('gen-1')];
    first.forget();
    abort('gen-1');
    expect([first.cause(), second.cause()]).toEqual([null, 'cancelled']);
  });
});
