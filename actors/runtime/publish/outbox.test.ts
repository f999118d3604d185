import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import { effects } from '../../effects/registry.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { Outbox } from './outbox.ts';

const effect: EffectRow = {
  partition: 1,
  id: 'trn_1-1',
  sessionId: 'ses_1',
  actorId: 'trn_1',
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

  it('DESIGN 6 rule 1: a row is deleted within a second of its publish ack, by a separate commit if none comes, and never before', async () => {
    let ack = () => {};
    const publish = vi.fn(() => new Promise<void>((resolve) => (ack = resolve)));
    const onRowsDone = vi.fn();
    const outbox = new Outbox({
      bus: { work: { publish }, notices: { publish: vi.fn() } } as unknown as Bus,
      clock: systemClock,
      log: silentLog,
      workOf: (kind) => effects.kind(kind).work,
      render: async () => '{}',
      onRowsDone,
      fail: () => expect.fail('nothing has failed'),
    });
    const plan = new CommitPlan();
    plan.openEffect({ ...effect, state: 'open' });
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

describe('an outbox whose queue was lost', () => {
  const row = (id: string, fields: { unpublished?: boolean; claimed?: boolean; openedAtMs?: number } = {}) => {
    const { unpublished = false, claimed = false, openedAtMs = 0 } = fields;
    const { partition: p, sessionId: session_id, actorId: turn_id, kind, inputs } = effect;
    return { id, p, session_id, turn_id, kind, inputs, created_at: new Date(openedAtMs), unpublished, claimed };
  };
  function outboxOn(rows: object[]) {
    const published: string[] = [];
    const outbox = new Outbox({
      bus: { work: { publish: async (_: string, id: string, body: string) => published.push(`${id} ${body}`) }, notices: {} } as unknown as Bus,
      clock: systemClock,
      log: silentLog,
      workOf: () => 'router.turn',
      render: async (_, republished) => (republished ? 'again' : 'first'),
      onRowsDone: () => {},
      fail: () => expect.fail('nothing has failed'),
    });
    const database = { query: async () => ({ rows, rowCount: rows.length }) } as unknown as Database;
    return { outbox, database, published };
  }

  it('publishes again what an acquired partition waits for and was opened before the queue, and leaves the rest', async () => {
    const hourMs = 3_600_000;
    const rows = [
      row('lost', { openedAtMs: hourMs - 1 }),
      row('claimed', { openedAtMs: hourMs - 1, claimed: true }),
      row('in-the-queue', { openedAtMs: 2 * hourMs }),
      row('unpublished', { openedAtMs: 2 * hourMs, unpublished: true }),
    ];
    const { outbox, database, published } = outboxOn(rows);
    await outbox.load(database, [1], hourMs);
    await outbox.stop();

    expect(published.sort()).toEqual(['lost again', 'unpublished again']);
  });

  it('publishes again what is open, and neither what has closed meanwhile nor what a worker has claimed', async () => {
    const { outbox, database, published } = outboxOn([row('open'), row('closed'), row('claimed', { claimed: true })]);
    await outbox.load(database, [1], -3_600_000);
    const plan = new CommitPlan();
    plan.effectStates.set('closed', { partition: 1, id: 'closed', state: 'done' });
    outbox.release(plan, new Set([1]));

    expect(await outbox.publishAgain(database, [1])).toBe(1);
    await outbox.stop();
    expect(published).toEqual(['open again']);
  });
});
