import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bus, Subscription } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { interestReply } from '#bus/messages/heartbeat.ts';
import { systemClock } from '#shared/clock.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import type { EffectStore } from '../../store/port/effect-store.ts';
import { replyForCalls } from './awaited-calls.ts';
import { Outbox } from './outbox.ts';

const effect: EffectRow = {
  ...{ partition: 3, id: 'trn_1-1', sessionId: 'ses_1', actorId: 'trn_1', createdAtMs: Date.now(), kind: 'router-call' },
  inputs: { template: 'compose@1', bundleHash: 'b', upToOffset: 0, deadlineAtMs: Number.MAX_SAFE_INTEGER, traceparent: null },
};
/** Of the effects only one is open, and its publish is acknowledged. */
const store: Pick<EffectStore, 'open'> = {
  open: async (partitions) => (partitions.includes(3) ? [{ effect, isUnpublished: false, hasOutboxRow: false, isClaimed: true }] : []),
};

describe('a worker that asks for the interest in its calls', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>;
  let bus: Bus;
  let outbox: Outbox;
  let answering: Subscription;
  let answers: { from: string; calls: string[]; epoch: number | undefined }[];

  beforeEach(async () => {
    database = await openTestDatabase();
    await migrate(database);
    bus = await openMemoryBus({ database, clock: systemClock });
    const never = () => expect.fail('nothing is published');
    outbox = new Outbox({
      bus,
      clock: systemClock,
      log: silentLog,
      workOf: never,
      callSilenceMs: 60_000,
      cursorOf: never,
      isOwner: never,
      render: never,
      onRowsDone: never,
      fail: never,
    });
    answering = replyForCalls({ bus, outbox, epochOf: (partition) => partition + 1, log: silentLog });
    answers = [];
    bus.notices.subscribe('held.w1', (_subject, body) => {
      const { from, calls, question, epoch } = interestReply.parse(JSON.parse(body));
      expect(question).toBe(7);
      answers.push({ from, calls, epoch });
    });
  });
  afterEach(async () => {
    await answering.stop();
    await outbox.stop();
    await bus.close();
    await database.close();
  });

  const ask = (partition: number, body: unknown = { v: 1, workerId: 'w1', question: 7, calls: ['trn_1-1', 'trn_1-2', 'trn_9-1'] }) =>
    bus.notices.publish(`hb.${partition}`, JSON.stringify(body));

  it('DESIGN 7: gets from the owner of the partition the calls for which an actor still waits', async () => {
    await outbox.load(store, [3], 0);
    ask(3);
    await expect.poll(() => answers).toEqual([{ from: '3', calls: ['trn_1-1'], epoch: 4 }]);
  });

  it('gets no answer from another host, from an owner that has not read the open calls yet, or from one that has released the partition', async () => {
    ask(3);
    await outbox.load(store, [3, 4], 0);
    ask(5);
    outbox.forget(3);
    ask(3);
    ask(4, 'nonsense');
    ask(4);
    await expect.poll(() => answers).toEqual([{ from: '4', calls: [], epoch: 5 }]);
  });
});
