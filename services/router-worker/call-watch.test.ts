import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { heartbeat } from '#bus/messages/heartbeat.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import { abortOf, resumptionOf } from '#bus/received-aborts.ts';
import { RunningItem } from '#services/work/running-items.ts';
import { CallWatch } from './call-watch.ts';
import { testNoticeBoard } from './test-support/notice-board.ts';

describe('CallWatch', () => {
  let board: ReturnType<typeof testNoticeBoard>;
  let watch: CallWatch;
  let reconnect: () => void;
  /** The origin's replies; null: it is silent. */
  let held: readonly string[] | null;

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
    board = testNoticeBoard();
    held = null;
    board.subscribe('hb.*', (subject, body) => {
      const { workerId, question, calls } = heartbeat.parse(JSON.parse(body));
      if (held === null) return;
      const mine = calls.filter((call) => held?.includes(call));
      board.publish(`held.${workerId}`, JSON.stringify({ v: 1, from: subject.slice('hb.'.length), question, calls: mine }));
    });
    const bus: Pick<Bus, 'notices' | 'isReady' | 'onReconnect'> = {
      notices: board,
      isReady: () => true,
      onReconnect: (handler) => {
        reconnect = handler;
        return { stop: async () => {} };
      },
    };
    watch = new CallWatch({ bus, clock: { nowMs: () => Date.now() } });
  });
  afterEach(async () => {
    await watch.stop();
    vi.useRealTimers();
  });

  const callOf = (callId: string, fields: Partial<RouterCall> = {}): RouterCall =>
    routerCall.parse({
      v: 1,
      callId,
      origin: 'gw1',
      want: 'frames',
      deadlineAtMs: Date.now() + 100_000,
      createdAtMs: Date.now(),
      keyId: 'k',
      traceparent: null,
      maxTokens: null,
      request: { messages: [{ role: 'user', content: 'Hello' }] },
      reply: null,
      ...fields,
    });
  const begin = async (callId: string, fields: Partial<RouterCall> = {}, queuedMs = 0) => {
    const running = new RunningItem(1);
    const following = watch.follow(callOf(callId, fields), running, Date.now() - queuedMs);
    if (following !== undefined) await following;
    return running;
  };
  const abort = (callId: string) => board.publish(`ctl.${callId}`, '{"abort":true}');
  const rounds = (count: number) => vi.advanceTimersByTime(count * 2_000);

  it.each(['', 'nonsense', '{}', '{"abort":false}', 'null'])('ignores "%s"', async (body) => {
    const call = await begin('gen-1');
    board.publish('ctl.gen-1', body);
    expect(call.cause).toBeNull();
  });

  it('names the attempt of a call in its heartbeats', async () => {
    const running = new RunningItem(2);
    running.attempt = 2_007;
    await watch.follow(callOf('gen-1'), running, Date.now());
    rounds(1);
    const named = board.sent.filter(({ subject }) => subject === 'hb.gw1').map(({ body }) => heartbeat.parse(JSON.parse(body)).attempts);
    expect(named).toEqual([[2_007]]);
    running.release();
  });

  it('aborts the named call, and no other', async () => {
    const [one, two] = [await begin('gen-1'), await begin('gen-2')];
    abort('gen-1');
    expect([one.cause, two.cause]).toEqual(['cancelled', null]);
  });

  it('DESIGN 7: a call that was aborted while it waited is not begun', async () => {
    abort('gen-1');
    vi.advanceTimersByTime(59_000);
    expect((await begin('gen-1', {}, 59_000)).cause).toBe('cancelled');
  });

  it('DESIGN 7: a detached call is not ended by readers that have left, before it begins or after', async () => {
    abort('gen-1');
    const call = await begin('gen-1', { detached: true });
    abort('gen-1');
    rounds(4);
    expect(call.cause).toBeNull();
  });

  it.each([true, false])('ends a call that was withdrawn while it waited or later, also a detached one (%s)', async (detached) => {
    const withdraw = (callId: string) => board.publish(`ctl.${callId}`, abortOf({ isWithdrawn: true, from: null }));
    withdraw('gen-1');
    const [waiting, begun] = [await begin('gen-1', { detached }), await begin('gen-2', { detached })];
    withdraw('gen-2');
    expect([waiting.cause, begun.cause]).toEqual(['cancelled', 'cancelled']);
  });

  it('has nothing to abort once a call is over', async () => {
    const call = await begin('gen-1');
    call.release();
    abort('gen-1');
    expect(call.cause).toBeNull();
  });

  it('aborts both when the same call runs twice for a moment', async () => {
    const [first, second] = [await begin('gen-1'), await begin('gen-1')];
    first.release();
    abort('gen-1');
    expect([first.cause, second.cause]).toEqual([null, 'cancelled']);
  });

  it('DESIGN 7: a call whose abort was lost is still ended', async () => {
    held = ['gen-1'];
    const [held1, left] = [await begin('gen-1'), await begin('gen-2')];
    rounds(2);
    expect([held1.cause, left.cause]).toEqual([null, 'cancelled']);
  });

  it('ends a call of a client half a minute after its gateway died, but not one of an actor, nor a detached one', async () => {
    const reply = { sessionId: 'ses_1', ...actorFields('trn_1') };
    const [client, actor, detached] = [await begin('gen-1'), await begin('trn_1-1', { reply }), await begin('gen-2', { detached: true })];
    rounds(16);
    expect([client.cause, actor.cause, detached.cause]).toEqual(['cancelled', null, null]);
  });

  it('asks the owner of its partition about an actor’s call', async () => {
    await begin('trn_1-1', { reply: { sessionId: 'ses_1', ...actorFields('trn_1') } });
    rounds(1);
    expect(board.sent.map(({ subject }) => subject)).toEqual([expect.stringMatching(/^hb\.\d+$/)]);
  });

  it('DESIGN 7: a call that a client reads elsewhere goes on when its first reader has ended', async () => {
    const call = await begin('gen-1');
    rounds(1);
    const asked = heartbeat.parse(JSON.parse(board.sent.at(-1)?.body ?? ''));
    board.publish(`held.${asked.workerId}`, JSON.stringify({ v: 1, from: 'gw2', question: asked.question, calls: ['gen-1'] }));
    abort('gen-1');
    expect(call.cause).toBeNull();
  });

  describe('with readers at several gateways', () => {
    const left = (gateway: string, callId = 'gen-1') => board.publish(`ctl.${callId}`, abortOf({ isWithdrawn: false, from: gateway }));
    const resumed = (gateway: string) => board.publish('ctl.gen-1', resumptionOf(gateway));
    /** The reply to the last heartbeat. */
    const confirm = (from: string) => {
      const { workerId, question } = heartbeat.parse(JSON.parse(board.sent.filter(({ subject }) => subject === 'hb.gw1').at(-1)?.body ?? ''));
      board.publish(`held.${workerId}`, JSON.stringify({ v: 1, from, question, calls: ['gen-1'] }));
    };

    it.each([
      ['the others first', ['gw2', 'gw3', 'gw1']],
      ['that of its origin first', ['gw1', 'gw2', 'gw3']],
    ])('DESIGN 7: a call ends at once when the last of its readers leaves, %s, and not before, though no heartbeat named it yet', async (_order, leaving) => {
      const call = await begin('gen-1');
      for (const gateway of ['gw2', 'gw3']) resumed(gateway);
      const causes = leaving.map((gateway) => {
        left(gateway);
        return call.cause;
      });
      expect(causes).toEqual([null, null, 'cancelled']);
    });

    it('DESIGN 7: goes on for the reader of its origin when another leaves, whether or not a heartbeat has named it', async () => {
      held = ['gen-1'];
      const call = await begin('gen-1');
      for (let time = 0; time < 2; time += 1) {
        resumed('gw2');
        left('gw2');
        rounds(20);
      }
      expect(call.cause).toBeNull();
      left('gw1');
      expect(call.cause).toBe('cancelled');
    });

    it('ends at once with a reader that a heartbeat has confirmed, when those of the origin had left', async () => {
      const call = await begin('gen-1');
      resumed('gw2');
      left('gw1');
      rounds(1);
      confirm('gw2');
      left('gw2');
      expect(call.cause).toBe('cancelled');
    });

    it('goes on for a client that has come back to its origin', async () => {
      const call = await begin('gen-1');
      resumed('gw2');
      left('gw1');
      resumed('gw1');
      left('gw2');
      expect(call.cause).toBeNull();
    });

    it('ends behind three more heartbeats when the readers elsewhere have left and its origin is dead', async () => {
      const call = await begin('gen-1');
      rounds(1);
      confirm('gw2');
      left('gw2');
      rounds(3);
      expect(call.cause).toBeNull();
      rounds(1);
      expect(call.cause).toBe('cancelled');
    });

    it('begins, though one that had resumed it elsewhere has left, and does not when that of its origin has', async () => {
      left('gw2', 'gen-1');
      left('gw1', 'gen-2');
      expect([(await begin('gen-1')).cause, (await begin('gen-2')).cause]).toEqual([null, 'cancelled']);
    });
  });

  describe('of a call whose origin has lost its reader before it begins', () => {
    const left = (gateway: string) => board.publish('ctl.gen-1', abortOf({ isWithdrawn: false, from: gateway }));
    const resumed = (gateway: string) => board.publish('ctl.gen-1', resumptionOf(gateway));

    it('goes on for the client that has resumed it elsewhere, and ends when that has left, too', async () => {
      resumed('gw2');
      left('gw1');
      const call = await begin('gen-1');
      expect(call.cause).toBeNull();
      left('gw2');
      expect(call.cause).toBe('cancelled');
    });

    it('goes on also while it asks who reads it', async () => {
      left('gw1');
      resumed('gw2');
      const begun = begin('gen-1', {}, 60_001);
      vi.advanceTimersByTime(300);
      expect((await begun).cause).toBeNull();
    });

    it('ends at once when the client that has resumed it elsewhere leaves, though it asked who reads it', async () => {
      left('gw1');
      resumed('gw2');
      const begun = begin('gen-1', {}, 60_001);
      vi.advanceTimersByTime(300);
      const call = await begun;
      expect(call.cause).toBeNull();
      left('gw2');
      expect(call.cause).toBe('cancelled');
    });

    it('does not begin when the other has left before', async () => {
      resumed('gw2');
      left('gw2');
      left('gw1');
      expect((await begin('gen-1')).cause).toBe('cancelled');
    });
  });

  it.each([
    ['waited longer than aborts are remembered', 60_001, () => {}],
    ['was there before this worker', 1, () => {}],
    ['was there before the bus came back', 1, () => vi.advanceTimersByTime(5_000)],
  ])('does not begin a call that %s and that has no interest any more', async (_case, queuedMs, before) => {
    held = ['gen-1'];
    before();
    reconnect();
    const begun = Promise.all([begin('gen-1', {}, queuedMs), begin('gen-2', {}, queuedMs), begin('gen-3', { detached: true }, queuedMs)]);
    vi.advanceTimersByTime(300);
    const [wanted, left, detached] = await begun;
    expect([wanted.cause, left.cause, detached.cause]).toEqual([null, 'cancelled', null]);
  });
});
