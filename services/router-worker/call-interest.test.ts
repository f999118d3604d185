import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { heartbeat } from '#bus/messages/heartbeat.ts';
import { CallInterest, type NoInterest } from './call-interest.ts';
import { testNoticeBoard } from './test-support/notice-board.ts';

const CLIENTS = { attempt: 1, heartbeatTo: 'gw1', epoch: 0, tolerates: [], sendsHeartbeatNow: false };

describe('CallInterest', () => {
  let board: ReturnType<typeof testNoticeBoard>;
  let interest: CallInterest;
  let isReady: boolean;
  /** Replies by origin; an origin without an entry is dead. */
  let held: Map<string, readonly string[]>;

  beforeEach(() => {
    vi.useFakeTimers();
    board = testNoticeBoard();
    isReady = true;
    held = new Map([['gw1', ['gen-1', 'gen-2']]]);
    board.subscribe('hb.*', (subject, body) => {
      const asked = heartbeat.parse(JSON.parse(body));
      for (const [from, calls] of held) {
        const mine = asked.calls.filter((call) => calls.includes(call));
        if (subject !== `hb.${from}` && mine.length === 0) continue;
        board.publish(`held.${asked.workerId}`, JSON.stringify({ v: 1, from, question: asked.question, calls: mine }));
      }
    });
    interest = new CallInterest({ notices: board, workerId: 'w1', isReady: () => isReady });
  });
  afterEach(async () => {
    await interest.stop();
    vi.useRealTimers();
  });

  const follow = (callId: string, fields: Partial<Parameters<CallInterest['follow']>[0]> = {}) => {
    const ends: NoInterest[] = [];
    const forget = interest.follow({ ...CLIENTS, callId, ...fields }, (why) => ends.push(why));
    return { ends, forget };
  };
  const questions = () => board.sent.filter(({ subject }) => subject.startsWith('hb.'));
  const ticks = (count: number) => vi.advanceTimersByTime(count * 2_000);

  it('DESIGN 7: a worker asks each origin every two seconds for the interest in all its calls at once, and not before', () => {
    follow('gen-1');
    follow('gen-2', { attempt: 2_007 });
    follow('trn_1-1', { heartbeatTo: '7' });
    vi.advanceTimersByTime(1_999);
    expect(questions()).toEqual([]);
    vi.advanceTimersByTime(1);
    const named = questions().map(({ subject, body }) => ({ subject, ...heartbeat.parse(JSON.parse(body)) }));
    expect(named).toMatchObject([
      { subject: 'hb.gw1', calls: ['gen-1', 'gen-2'], attempts: [1, 2_007] },
      { subject: 'hb.7', calls: ['trn_1-1'], attempts: [1] },
    ]);
  });

  it('ignores an answer to a question from more than four rounds ago', () => {
    held.clear();
    const { ends } = follow('gen-1');
    ticks(6);
    const answerTo = (question: number) => board.publish('held.w1', JSON.stringify({ v: 1, from: 'gw1', question, calls: [] }));

    for (const question of [1, 2]) answerTo(question);
    expect(ends).toEqual([]);
    for (const question of [5, 6]) answerTo(question);
    expect(ends).toEqual(['left']);
  });

  it('stores nothing of a call that is over, though questions about it are still open', async () => {
    const interestByCall = (() => {
      const request = { text: 'of a call' };
      const forget = interest.follow({ ...CLIENTS, callId: 'gen-1' }, () => request.text);
      ticks(1);
      forget();
      return new WeakRef(request);
    })();
    vi.useRealTimers();
    // A WeakRef's target is kept until the tick that created it ends.
    await nextTurn();
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    expect(questions()).toHaveLength(1);
    expect(interestByCall.deref()).toBeUndefined();
  });

  it('DESIGN 7: a call that has waited long is asked about at once', () => {
    follow('gen-1', { sendsHeartbeatNow: true });
    vi.advanceTimersByTime(0);
    expect(questions()).toHaveLength(1);
  });

  it('DESIGN 7: calls that have waited and begin in one tick are asked about by one heartbeat for each origin', () => {
    for (let number = 1; number <= 100; number += 1) follow(`gen-${number}`, { sendsHeartbeatNow: true });
    follow('gen-101', { sendsHeartbeatNow: true }).forget();
    follow('trn_1-1', { heartbeatTo: '7', sendsHeartbeatNow: true });
    vi.advanceTimersByTime(0);
    expect(questions().map(({ subject, body }) => [subject, heartbeat.parse(JSON.parse(body)).calls.length])).toEqual([
      ['hb.gw1', 100],
      ['hb.7', 1],
    ]);
  });

  it('lets a call go on for as long as it has interest', () => {
    const { ends } = follow('gen-1');
    ticks(100);
    expect(ends).toEqual([]);
  });

  it('DESIGN 7: a call that two answers of its origin leave out is ended, and no other', () => {
    const [left, stays] = [follow('gen-9'), follow('gen-1')];
    ticks(1);
    expect(left.ends).toEqual([]);
    ticks(1);
    expect([left.ends, stays.ends]).toEqual([['left'], []]);
    ticks(100);
    expect(left.ends).toEqual(['left']);
  });

  it('counts only answers in a row', () => {
    const { ends } = follow('gen-9');
    for (let round = 0; round < 10; round += 1) {
      held.set('gw1', round % 2 === 0 ? [] : ['gen-9']);
      ticks(1);
    }
    expect(ends).toEqual([]);
  });

  it('DESIGN 7: a call with interest of another gateway goes on until that ends', () => {
    const { ends } = follow('gen-9');
    held.set('gw2', ['gen-9']);
    ticks(10);
    expect([ends, interest.isReadWithout({ callId: 'gen-9', heartbeatTo: 'gw1' }, 'gw1')]).toEqual([[], true]);
    held.delete('gw2');
    ticks(2);
    expect(ends).toEqual(['left']);
  });

  it('counts the interest of another gateway for six seconds after its answer', () => {
    held.set('gw2', ['gen-1']);
    follow('gen-1');
    ticks(1);
    held.delete('gw2');
    vi.advanceTimersByTime(5_999);
    const isReadElsewhere = (callId: string) => interest.isReadWithout({ callId, heartbeatTo: 'gw1' }, 'gw1');
    expect(isReadElsewhere('gen-1')).toBe(true);
    // The machine's clock is set.
    vi.setSystemTime(Date.now() + 3_600_000);
    expect(isReadElsewhere('gen-1')).toBe(true);
    vi.advanceTimersByTime(1);
    expect(isReadElsewhere('gen-1')).toBe(false);
    expect(isReadElsewhere('gen-2')).toBe(false);
  });

  it('DESIGN 7: a call whose gateway is dead has half a minute, and more when another has interest', () => {
    held.clear();
    const [lost, resumed] = [follow('gen-1'), follow('gen-2')];
    ticks(10);
    held.set('gw2', ['gen-2']);
    ticks(5);
    expect(lost.ends).toEqual([]);
    ticks(1);
    expect([lost.ends, resumed.ends]).toEqual([['unanswered'], []]);
    ticks(100);
    expect(resumed.ends).toEqual([]);
  });

  it('DESIGN 7: does not count time without one of its connections, and sends heartbeats then, by which gateways know that their worker is alive', () => {
    held.clear();
    const { ends } = follow('gen-1');
    isReady = false;
    ticks(100);
    expect([ends, questions().length]).toEqual([[], 100]);
  });

  it('DESIGN 7: an actor’s call goes on while its partition has no owner, and ends when its owner waits no more', () => {
    const { ends } = follow('trn_1-1', { heartbeatTo: '7', tolerates: ['unanswered'] });
    ticks(100);
    expect(ends).toEqual([]);
    held.set('7', []);
    ticks(2);
    expect(ends).toEqual(['left']);
  });

  it('ignores the late answer of a former owner that was paused, about calls that it never had', () => {
    const { ends } = follow('trn_1-1', { heartbeatTo: '7', tolerates: ['unanswered'] });
    held.set('7', ['trn_1-1']);
    ticks(5);
    for (const question of [1, 2, 3, 4, 5]) board.publish('held.w1', JSON.stringify({ v: 1, from: '7', question, calls: [] }));
    expect(ends).toEqual([]);
    held.set('7', []);
    ticks(2);
    expect(ends).toEqual(['left']);
  });

  it('ignores a former owner that has not noticed: an answer under an older epoch than that of the call does not count', async () => {
    const { ends } = follow('trn_1-1', { heartbeatTo: '7', epoch: 4, tolerates: ['unanswered'] });
    const asked = { callId: 'trn_1-1', heartbeatTo: '7', attempt: 1, epoch: 4, tolerates: [], sendsHeartbeatNow: false };
    const wanted = interest.followIfRead(asked, () => {}, 300);
    const answer = (epoch: number) => {
      const { question } = heartbeat.parse(JSON.parse(questions().at(-1)?.body ?? ''));
      board.publish('held.w1', JSON.stringify({ v: 1, from: '7', question, calls: [], epoch }));
    };
    answer(3);
    vi.advanceTimersByTime(300);
    const unfollow = await wanted;
    expect(unfollow).not.toBeNull();
    unfollow?.();
    for (let round = 0; round < 3; round += 1) {
      ticks(1);
      answer(3);
    }
    expect(ends).toEqual([]);
    for (let round = 0; round < 2; round += 1) {
      ticks(1);
      answer(4);
    }
    expect(ends).toEqual(['left']);
  });

  it('asks about a detached call too, and never ends it', () => {
    const { ends } = follow('gen-9', { tolerates: ['left', 'unanswered'] });
    ticks(30);
    held.clear();
    ticks(30);
    expect(ends).toEqual([]);
    expect(questions()).toHaveLength(60);
  });

  it('does not ask about a call that is over', () => {
    follow('gen-1').forget();
    ticks(2);
    expect(questions()).toEqual([]);
  });

  it.each(['', 'nonsense', '{}', '{"v":2,"from":"gw1","question":1,"calls":[]}', '{"v":1,"from":"gw1","question":99,"calls":[]}'])(
    'takes no notice of %j',
    (body) => {
      held.clear();
      const { ends } = follow('gen-1', { sendsHeartbeatNow: true });
      vi.advanceTimersByTime(0);
      for (let time = 0; time < 5; time += 1) board.publish('held.w1', body);
      expect(ends).toEqual([]);
    },
  );

  it('reads an answer as one about the calls of its question, and no others', () => {
    held.clear();
    const asked = follow('gen-1', { sendsHeartbeatNow: true });
    const later = follow('gen-2');
    vi.advanceTimersByTime(0);
    for (let time = 0; time < 3; time += 1) board.publish('held.w1', '{"v":1,"from":"gw1","question":1,"calls":[]}');
    expect([asked.ends, later.ends]).toEqual([['left'], []]);
  });

  it('asks in several messages about more calls than one may name', () => {
    held.set(
      'gw1',
      Array.from({ length: 2_500 }, (_, index) => `gen-${index}`),
    );
    const calls = Array.from({ length: 2_500 }, (_, index) => follow(`gen-${index}`));
    ticks(3);
    expect(questions()).toHaveLength(9);
    expect(calls.every(({ ends }) => ends.length === 0)).toBe(true);
  });

  describe('before a call whose abort may have been missed', () => {
    const wanted = async (callId: string) => {
      const asked = interest.followIfRead({ callId, heartbeatTo: 'gw1', attempt: 1, epoch: 0, tolerates: [], sendsHeartbeatNow: false }, () => {}, 300);
      vi.advanceTimersByTime(300);
      return (await asked) !== null;
    };

    it('executes it when its client still waits', async () => expect(await wanted('gen-1')).toBe(true));

    it('does not begin it when its client has disconnected', async () => expect(await wanted('gen-9')).toBe(false));

    it('executes it when another gateway has a reader of it', async () => {
      held.set('gw2', ['gen-9']);
      expect(await wanted('gen-9')).toBe(true);
    });

    it('executes it without an answer', async () => {
      held.clear();
      expect(await wanted('gen-1')).toBe(true);
    });
  });
});
