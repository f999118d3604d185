import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import { effects } from '../../effects/registry.ts';
import type { OpenEffect } from '../../store/port/effect-store.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { Outbox } from './outbox.ts';
import { Unrenderable } from './unrenderable.ts';

const effect: EffectRow = {
  partition: 1,
  id: 'trn_1-1',
  sessionId: 'ses_1',
  actorId: 'trn_1',
  createdAtMs: 0,
  kind: 'router-call',
  inputs: { template: 'compose@1', bundleHash: 'b', upToOffset: 0, deadlineAtMs: Number.MAX_SAFE_INTEGER, traceparent: null },
};

/** No dispatch is lost. */
const silence = { callSilenceMs: 60_000, cursorOf: () => 0, isOwner: () => true };

/** @param work with which the case is about */
function busWith(work: object): Bus {
  const nothing = () => ({ stop: async () => {} });
  return {
    work: { maxDispatchBytes: () => 1_000_000, onRefused: nothing, onStored: nothing, earliestDispatchAtMs: 0, ...work },
    notices: { publish: vi.fn() },
    commands: { lastOf: async () => 0 },
    connectionNumber: () => 1,
  } as unknown as Bus;
}

describe('the outbox', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('DESIGN 6 rule 1: an effect is marked as published within a second of its publish ack, by a separate commit if none comes, and never before', async () => {
    let ack = () => {};
    const publish = vi.fn(() => new Promise<void>((resolve) => (ack = resolve)));
    const onRowsDone = vi.fn();
    const outbox = new Outbox({
      bus: busWith({ publish }),
      clock: systemClock,
      log: silentLog,
      workOf: (kind) => effects.kind(kind).work,
      ...silence,
      render: async () => '{}',
      onRowsDone,
      fail: () => expect.fail('nothing has failed'),
    });
    const plan = new CommitPlan();
    plan.openEffect({ ...effect, kind: 'tool-call', state: 'open' });
    outbox.release(plan, new Set([1]));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(publish).toHaveBeenCalledExactlyOnceWith('tool', 'trn_1-1', '{}', 0);
    expect([onRowsDone.mock.calls.length, outbox.hasDone]).toEqual([0, false]);

    ack();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(onRowsDone).toHaveBeenCalledOnce();
    const deleting = new CommitPlan();
    outbox.addDone(deleting, () => true);
    expect([...deleting.outboxDone]).toEqual([['trn_1-1', 1]]);
    outbox.release(deleting, new Set([1]));
    expect(outbox.hasDone).toBe(false);
    await outbox.stop();
  });

  it('reports an effect at once that this release can not render, and tries it no more', async () => {
    const render = vi.fn(async () => Promise.reject(new Unrenderable('another template')));
    const fail = vi.fn();
    const bus = busWith({ publish: () => expect.fail('nothing is published'), dispatch: () => expect.fail('nothing is dispatched') });
    const outbox = new Outbox({ bus, clock: systemClock, log: silentLog, workOf: () => 'router.turn', ...silence, render, onRowsDone: vi.fn(), fail });
    const plan = new CommitPlan();
    plan.openEffect({ ...effect, state: 'open' });
    outbox.release(plan, new Set([1]));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([render.mock.calls.length, fail.mock.calls]).toEqual([1, [[expect.objectContaining(effect), expect.any(Unrenderable)]]]);
    await outbox.stop();
  });
});

describe('an outbox whose queue was lost', () => {
  const stored = (id: string, fields: { unpublished?: boolean; claimed?: boolean; openedAtMs?: number } = {}): OpenEffect => {
    const { unpublished = false, claimed = false, openedAtMs = 0 } = fields;
    return { effect: { ...effect, id, createdAtMs: openedAtMs }, isUnpublished: unpublished, hasOutboxRow: false, isClaimed: claimed };
  };
  function outboxOn(effects: OpenEffect[]) {
    const published: string[] = [];
    const outbox = new Outbox({
      bus: busWith({ publish: async (_: string, id: string, body: string) => published.push(`${id} ${body}`) }),
      clock: systemClock,
      log: silentLog,
      workOf: () => 'tool',
      ...silence,
      render: async (_, republished) => (republished ? 'again' : 'first'),
      onRowsDone: () => {},
      fail: () => expect.fail('nothing has failed'),
    });
    return { outbox, store: { open: async () => effects }, published };
  }

  it('publishes again what an acquired partition waits for and was opened before the queue, and leaves the rest', async () => {
    const hourMs = 3_600_000;
    const effects = [
      stored('lost', { openedAtMs: hourMs - 1 }),
      stored('claimed', { openedAtMs: hourMs - 1, claimed: true }),
      stored('in-the-queue', { openedAtMs: 2 * hourMs }),
      stored('unpublished', { openedAtMs: 2 * hourMs, unpublished: true }),
    ];
    const { outbox, store, published } = outboxOn(effects);
    await outbox.load(store, [1], hourMs);
    await outbox.stop();

    expect(published.sort()).toEqual(['lost again', 'unpublished again']);
  });

  it('publishes again what is open, and neither what has closed meanwhile nor what a worker has claimed', async () => {
    const { outbox, store, published } = outboxOn([stored('open'), stored('closed'), stored('claimed', { claimed: true })]);
    await outbox.load(store, [1], -3_600_000);
    const plan = new CommitPlan();
    plan.effectStates.set('closed', { partition: 1, id: 'closed', state: 'done' });
    outbox.release(plan, new Set([1]));

    expect(await outbox.publishAgain(store, [1])).toBe(1);
    await outbox.stop();
    expect(published).toEqual(['open again']);
  });
});

describe('an outbox with effects of a release before', () => {
  it('has their rows deleted, also when they end before their publish is acknowledged', async () => {
    const outbox = new Outbox({
      bus: busWith({ publish: () => new Promise(() => {}) }),
      clock: systemClock,
      log: silentLog,
      workOf: () => 'tool',
      ...silence,
      render: async () => '{}',
      onRowsDone: () => {},
      fail: () => expect.fail('nothing has failed'),
    });
    await outbox.load({ open: async () => [{ effect, isUnpublished: true, hasOutboxRow: true, isClaimed: false }] }, [1], 0);
    const closing = new CommitPlan();
    closing.effectStates.set(effect.id, { partition: 1, id: effect.id, state: 'done' });
    outbox.addDone(closing, () => true);
    outbox.release(closing, new Set([1]));
    const next = new CommitPlan();
    outbox.addDone(next, () => true);
    outbox.release(next, new Set([1]));

    expect([[...closing.outboxDone], [...next.outboxDone]]).toEqual([[], [[effect.id, 1]]]);
    expect(outbox.hasDone).toBe(false);
  });
});
