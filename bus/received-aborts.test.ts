import { beforeEach, describe, expect, it } from 'vitest';
import { type Abort, abortOf, ReceivedAborts, resumptionOf } from './received-aborts.ts';

describe('ReceivedAborts', () => {
  let deliver: (subject: string, body: string) => void;
  let aborts: ReceivedAborts;
  let nowMs = 1_000_000;
  let aborted: string[];

  beforeEach(() => {
    nowMs = 1_000_000;
    aborted = [];
    aborts = new ReceivedAborts({
      notices: {
        publish: () => {},
        subscribe(pattern, handler) {
          expect(pattern).toBe('ctl.*');
          deliver = handler;
          return { stop: async () => {}, ready: async () => {} };
        },
      },
      clock: { nowMs: () => nowMs },
    });
  });

  const follow = (callId: string, name = callId) => aborts.follow(callId, { onAbort: () => aborted.push(name) });
  const abort = (callId: string) => deliver(`ctl.${callId}`, '{"abort":true}');

  it.each(['', 'nonsense', '{}', '{"abort":false}', 'null'])('ignores "%s"', (body) => {
    follow('one');
    deliver('ctl.one', body);
    expect(aborted).toEqual([]);
  });

  it('notifies every follower of the named call, and no other', () => {
    follow('one', 'first');
    follow('one', 'second');
    follow('two');
    abort('one');
    expect(aborted).toEqual(['first', 'second']);
  });

  it('does not notify a follower that has ended, and still notifies the other', () => {
    const end = follow('one', 'first');
    follow('one', 'second');
    end();
    abort('one');
    expect(aborted).toEqual(['second']);
  });

  it('stores an abort of a call that has not begun for a minute', () => {
    abort('one');
    nowMs += 59_999;
    follow('one', 'in time')();
    nowMs += 1;
    follow('one', 'late');
    expect(aborted).toEqual(['in time']);
  });

  it('says whether the call was withdrawn, also of a stored one that was aborted for another reason since', () => {
    const seen: boolean[] = [];
    const withdraw = (callId: string) => deliver(`ctl.${callId}`, abortOf({ isWithdrawn: true, from: null }));
    withdraw('one');
    abort('one');
    aborts.follow('one', { onAbort: ({ isWithdrawn }) => seen.push(isWithdrawn) });
    abort('one');
    withdraw('one');
    expect(seen).toEqual([true, false, true]);
  });

  it('says which gateway has no reader any more, also of each stored one', () => {
    const seen: Abort[] = [];
    const from = (gateway: string | null, isWithdrawn = false) => deliver('ctl.one', abortOf({ isWithdrawn, from: gateway }));
    for (const gateway of [null, 'ga', 'gb', 'ga']) from(gateway);
    aborts.follow('one', { onAbort: (abort) => seen.push(abort) });
    from('gc', true);
    expect(seen).toEqual([...[null, 'ga', 'gb'].map((gateway) => ({ isWithdrawn: false, from: gateway })), { isWithdrawn: true, from: 'gc' }]);
  });

  it('says at which gateway a client has resumed a call, which is no abort', () => {
    const seen: string[] = [];
    follow('one');
    aborts.follow('one', { onAbort: () => {}, onResumed: (from) => seen.push(from) });
    deliver('ctl.one', resumptionOf('ga'));
    deliver('ctl.two', resumptionOf('ga'));
    expect([seen, aborted]).toEqual([['ga'], []]);
  });

  it('says first which gateways have a reader of a call that has not begun, by the last notice of each', () => {
    const seen: unknown[] = [];
    const [left, resumed] = [
      (from: string) => deliver('ctl.one', abortOf({ isWithdrawn: false, from })),
      (from: string) => deliver('ctl.one', resumptionOf(from)),
    ];
    left('ga');
    resumed('gb');
    resumed('gc');
    left('gc');
    left('gd');
    resumed('gd');
    deliver('ctl.one', abortOf({ isWithdrawn: true, from: 'ge' }));
    resumed('ge');
    aborts.follow('one', { onAbort: (abort) => seen.push(abort), onResumed: (from) => seen.push(from) });
    expect(seen).toEqual(['gb', 'gd', ...['ga', 'gc'].map((from) => ({ isWithdrawn: false, from })), { isWithdrawn: true, from: 'ge' }]);
  });

  it('stores resumptions for a minute', () => {
    const seen: string[] = [];
    const onResumed = (from: string) => seen.push(from);
    deliver('ctl.one', resumptionOf('ga'));
    nowMs += 59_999;
    aborts.follow('one', { onAbort: () => {}, onResumed })();
    nowMs += 1;
    aborts.follow('one', { onAbort: () => {}, onResumed });
    expect(seen).toEqual(['ga']);
  });

  it('stores a bounded number of aborts: the oldest are dropped', () => {
    for (let index = 0; index <= 10_000; index += 1) abort(`call-${index}`);
    follow('call-0');
    follow('call-1');
    expect(aborted).toEqual(['call-1']);
  });
});
