import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { CommitPlan } from './commit-plan.ts';
import type { EffectRow } from './effects.ts';
import { Outbox } from './outbox.ts';

const effect: EffectRow = {
  partition: 1,
  id: 'trn_1-1',
  sessionId: 'ses_1',
  turnId: 'trn_1',
  createdAtMs: 0,
  kind: 'router-call',
  inputs: { template: 'compose@1', bundleHash: 'b', upToOffset: 0, deadlineAtMs: Number.MAX_SAFE_INTEGER, traceparent: null },
};

describe('the outbox', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('DESIGN 6 rule 1: a row is deleted within a second of its publish ack, by a commit of its own if none comes, and never before', async () => {
    let ack = () => {};
    const publish = vi.fn(() => new Promise<void>((resolve) => (ack = resolve)));
    const onRowsDone = vi.fn();
    const outbox = new Outbox({
      bus: { work: { publish }, notices: { publish: vi.fn() } } as unknown as Bus,
      clock: systemClock,
      log: silentLog,
      render: async () => '{}',
      onRowsDone,
      fail: () => expect.fail('nothing has failed'),
    });
    const plan = new CommitPlan();
    plan.openEffect(effect);
    outbox.release(plan, new Set([1]));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(publish).toHaveBeenCalledExactlyOnceWith('router.turn', 'trn_1-1', '{}');
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
});
