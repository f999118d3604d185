import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import { effects } from '../../effects/registry.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { Outbox } from './outbox.ts';

const SILENCE_MS = 6_000;
/** The silence, and up to two checks: until it is noticed, and until it is judged. */
const JUDGED_MS = SILENCE_MS + 3_000;
/** In which workers name their calls behind a reconnect. */
const RECONNECTED_MS = 3_900;

const call: EffectRow = {
  ...{ partition: 3, id: 'trn_1-1', sessionId: 'ses_1', actorId: 'trn_1', createdAtMs: 0, kind: 'router-call' },
  inputs: { template: 'compose@1', bundleHash: 'b', upToOffset: 0, deadlineAtMs: Number.MAX_SAFE_INTEGER, traceparent: null },
};

/** An outbox that owns partition 3, on a bus whose faults are set here. */
function outboxUnderTest() {
  const sent: string[] = [];
  const state = {
    ...{ cursor: 10, last: 10, connection: 1 as number | null, isOwner: true, maxDispatchBytes: 1_000 },
    ...{ earliestDispatchAtMs: 0, isDispatchRefused: false },
    reads: () => Promise.resolve(),
    renders: () => Promise.resolve(),
  };
  let refuse: (id: string) => void = () => {};
  let reportStored: (id: string) => void = () => {};
  const subscription = { stop: async () => {} };
  const bus = {
    work: {
      dispatch: (kind: string, id: string, body: Uint8Array) => {
        if (state.isDispatchRefused) throw new Error('the messages of this broker are smaller');
        sent.push(`dispatch ${kind} ${id} ${Buffer.from(body)}`);
      },
      publish: async (kind: string, id: string, body: string, earlier: number) => sent.push(`publish ${kind} ${id} ${body} ${earlier}`),
      maxDispatchBytes: () => state.maxDispatchBytes,
      onRefused: (handler: typeof refuse) => {
        refuse = handler;
        return subscription;
      },
      onStored: (handler: typeof reportStored) => {
        reportStored = handler;
        return subscription;
      },
      get earliestDispatchAtMs() {
        return state.earliestDispatchAtMs;
      },
    },
    commands: { lastOf: async () => state.reads().then(() => state.last) },
    notices: { publish: () => {} },
    connectionNumber: () => state.connection,
  } as unknown as Bus;
  const outbox = new Outbox({
    bus,
    clock: systemClock,
    log: silentLog,
    workOf: (kind) => effects.kind(kind).work,
    callSilenceMs: SILENCE_MS,
    cursorOf: () => state.cursor,
    isOwner: () => state.isOwner,
    render: (_, republished) => state.renders().then(() => (republished ? 'again' : 'first')),
    onRowsDone: () => {},
    fail: () => expect.fail('nothing has failed'),
  });
  const open = async (effect = call) => {
    const plan = new CommitPlan();
    plan.openEffect({ ...effect, state: 'open' });
    outbox.release(plan, new Set([3]));
    await vi.advanceTimersByTimeAsync(0);
  };
  const end = (effectState: 'done' | 'superseded' = 'done') => {
    const plan = new CommitPlan();
    plan.effectStates.set(call.id, { partition: 3, id: call.id, state: effectState });
    outbox.release(plan, new Set([3]));
  };
  return { outbox, sent, state, open, end, refuse: (id: string) => refuse(id), reportStored: (id: string) => reportStored(id) };
}

describe('a model call of an actor', () => {
  let test: ReturnType<typeof outboxUnderTest>;
  const dispatched = 'dispatch router.turn trn_1-1 first';
  const queuedAgain = 'publish router.turn trn_1-1 again 1';

  beforeEach(() => {
    vi.useFakeTimers();
    test = outboxUnderTest();
  });
  afterEach(async () => {
    await test.outbox.stop();
    vi.useRealTimers();
  });

  it('DESIGN 6: is dispatched, and its row stays unpublished: it ends unmarked', async () => {
    await test.open();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched], false]);
    test.end();
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched], false]);
  });

  it('is queued when no worker is there, as a first delivery, and marked', async () => {
    await test.open();
    test.refuse('another');
    test.refuse(call.id);
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched, 'publish router.turn trn_1-1 first 0'], true]);
  });

  it('is queued when it is too long to be dispatched', async () => {
    test.state.maxDispatchBytes = 4;
    await test.open();
    expect(test.sent).toEqual(['publish router.turn trn_1-1 first 0']);
  });

  it('DESIGN 6: is queued once no worker has named it for six seconds, marked as delivered before, and once', async () => {
    await test.open();
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    expect(test.sent).toEqual([dispatched]);
    await vi.advanceTimersByTimeAsync(JUDGED_MS * 10);
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched, queuedAgain], true]);
  });

  it('stays with its worker while heartbeats name it', async () => {
    await test.open();
    for (let second = 0; second < 30; second += 2) {
      test.outbox.onHeartbeat(['another', call.id]);
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(test.sent).toEqual([dispatched]);
  });

  it('DESIGN 6: is not made again while its result may be among the commands that this host has not applied', async () => {
    await test.open();
    test.state.last = 12;
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    test.state.last = 99;
    test.state.cursor = 11;
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    expect(test.sent).toEqual([dispatched]);
    test.state.cursor = 12;
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect(test.sent).toEqual([dispatched, queuedAgain]);
  });

  it('is not judged by a host that receives no heartbeats: without its broker, right behind a reconnect, or without the end of the log', async () => {
    await test.open();
    test.state.connection = null;
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    test.state.connection = 2;
    await vi.advanceTimersByTimeAsync(RECONNECTED_MS);
    expect(test.sent).toEqual([dispatched]);
    test.state.reads = () => Promise.reject(new Error('the broker does not reply'));
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    expect(test.sent).toEqual([dispatched]);
    test.state.reads = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect(test.sent).toEqual([dispatched, queuedAgain]);
  });

  it('is queued soon behind a reconnect: the silence of its worker began before, with its dispatch', async () => {
    await test.open();
    test.state.connection = null;
    await vi.advanceTimersByTimeAsync(SILENCE_MS);
    test.state.connection = 2;
    await vi.advanceTimersByTimeAsync(RECONNECTED_MS + 2_000);
    expect(test.sent).toEqual([dispatched, queuedAgain]);
  });

  it('DESIGN 6: is queued within half a minute though the connection is lost every three seconds', async () => {
    await test.open();
    for (let second = 0; second < 30; second += 3) {
      test.state.connection = 2 + second;
      await vi.advanceTimersByTimeAsync(3_000);
    }
    expect(test.sent).toEqual([dispatched, queuedAgain]);
  });

  it('is judged by the log that is there: another one has other positions', async () => {
    await test.open();
    test.state.last = 99;
    await vi.advanceTimersByTimeAsync(2 * JUDGED_MS);
    Object.assign(test.state, { last: 2, cursor: 2 });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(test.sent).toEqual([dispatched, queuedAgain]);
  });

  it('DESIGN 6: is marked, and not published by its owner too, once a worker without a free slot has stored it', async () => {
    await test.open();
    test.reportStored('another');
    expect(test.outbox.hasDone).toBe(false);
    test.reportStored(call.id);
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched], true]);
  });

  it('DESIGN 6: is not dispatched by a host that was paused before: another may have dispatched it', async () => {
    test.state.isOwner = false;
    await test.open();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(test.sent).toEqual([]);
    test.state.isOwner = true;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(test.sent).toEqual([dispatched]);
  });

  it('DESIGN 6: is dispatched before its partition is released, and queued if it is refused', async () => {
    let rendered = () => {};
    test.state.renders = () => new Promise((resolve) => (rendered = resolve));
    await test.open();
    const released = vi.fn();
    const handedOver = test.outbox.handOver([3]).then(released);
    await vi.advanceTimersByTimeAsync(100);
    expect([test.sent, released.mock.calls]).toEqual([[], []]);
    let reply = () => {};
    test.state.reads = () => new Promise((resolve) => (reply = resolve));
    rendered();
    await vi.advanceTimersByTimeAsync(100);
    expect([test.sent, released.mock.calls]).toEqual([[dispatched], []]);
    test.state.renders = async () => {};
    test.refuse(call.id);
    reply();
    await handedOver;
    expect([test.sent, test.outbox.hasDone]).toEqual([[dispatched, 'publish router.turn trn_1-1 first 0'], true]);
  });

  it('is waited for within half a second when its partition is released, and others and named ones not at all', async () => {
    await test.open();
    test.state.reads = () => new Promise(() => {});
    await test.outbox.handOver([4]);
    const released = vi.fn();
    void test.outbox.handOver([3]).then(released);
    await vi.advanceTimersByTimeAsync(499);
    expect(released).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2);
    expect(released).toHaveBeenCalled();
    test.outbox.onHeartbeat([call.id]);
    await test.outbox.handOver([3]);
  });

  it('DESIGN 6: of an earlier process is queued at once where its dispatch has ended with that process', async () => {
    test.state.earliestDispatchAtMs = 5_000;
    const stored = (id: string, createdAtMs: number) => ({
      ...{ isUnpublished: true, hasOutboxRow: false, isClaimed: false },
      effect: { ...call, id, createdAtMs },
    });
    await test.outbox.load({ open: async () => [stored('trn_1-1', 4_999), stored('trn_2-1', 5_000)] }, [3], 0);
    await vi.advanceTimersByTimeAsync(0);
    expect(test.sent).toEqual([queuedAgain]);
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect(test.sent).toEqual([queuedAgain, 'publish router.turn trn_2-1 again 1']);
  });

  it('is not followed when it could not be dispatched, and published once', async () => {
    test.state.isDispatchRefused = true;
    await test.open();
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    expect(test.sent).toEqual(['publish router.turn trn_1-1 again 0']);
  });

  it('is not sent again by a host that has lost its partition, nor once its session was stopped', async () => {
    await test.open();
    test.outbox.forget(3);
    await test.open();
    test.end('superseded');
    await vi.advanceTimersByTimeAsync(5 * JUDGED_MS);
    expect(test.sent).toEqual([dispatched, dispatched]);
  });

  it('DESIGN 6: stays with its worker when another host takes over, which queues it if no worker names it', async () => {
    const store = { open: async () => [{ effect: call, isUnpublished: true, hasOutboxRow: false, isClaimed: false }] };
    await test.outbox.load(store, [3], 0);
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1_000);
    test.outbox.onHeartbeat([call.id]);
    // The queue was lost meanwhile, and the call was not in it.
    expect(await test.outbox.publishAgain(store, [3])).toBe(0);
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1_000);
    expect(test.sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(JUDGED_MS);
    expect(test.sent).toEqual([queuedAgain]);
  });
});
