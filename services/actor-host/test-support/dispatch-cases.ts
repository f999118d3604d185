import { describe, expect, it, vi } from 'vitest';
import { Host } from '#actors/runtime/host.ts';
import { Outbox } from '#actors/runtime/publish/outbox.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { completed, create, post } from './commands.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Longer than any case: what is not dispatched is not made in time. */
const NEVER_SILENT = { beatMs: 100, expiresAfterMs: 60_000, dropAfterMs: 50_000, cutOffMs: 60_000, callSilenceMs: 600_000 };

/** Few, since a host ends only what has begun. */
const AT_A_TIME = 4;

/** Cases of the model calls that hosts dispatch. */
export function dispatchCases(open: () => Promise<TestCluster>): void {
  /** A worker that begins calls, and neither ends nor names them. */
  const beginCalls = (cluster: TestCluster) => {
    const begun = new Map<string, number>();
    const worker = cluster.bus.work.consume('router.turn', { concurrency: 10_000, ackWaitMs: 30_000 }, async ({ messageId, deliveryCount }) => {
      begun.set(messageId, deliveryCount);
    });
    return { begun, worker };
  };
  /** Begins some turns at a time until the end of something. @returns how many */
  const beginTurnsUntil = async (cluster: TestCluster, end: Promise<unknown>) => {
    let isOver = false;
    let turns = 0;
    void end.then(() => {
      isOver = true;
    });
    while (!isOver) {
      const begun = Array.from({ length: AT_A_TIME }, (_, n) => `ses_${turns + n}`);
      turns += AT_A_TIME;
      for (const sessionId of begun) await Promise.all([cluster.send(create(sessionId)), cluster.send(post(sessionId, 'hello'))]);
      // Of both commands: its model call is committed at about this time.
      await eventually(() => cluster.replies.length >= 2 * turns);
    }
    return turns;
  };

  describe('model calls that hosts dispatch', () => {
    it('DESIGN 6: a dispatched call whose worker dies is made by another, once no worker names it', async () => {
      const cluster = await open();
      const first = await cluster.host({ times: { callSilenceMs: 1_000 } });
      await cluster.send(create('ses_a'));
      const delivered: string[] = [];
      const begin = () =>
        cluster.bus.work.consume('router.turn', { concurrency: 8, ackWaitMs: 30_000 }, async (item) => {
          delivered.push(`${item.messageId} ${item.deliveryCount}`);
        });
      // It has begun the call, and neither ends it nor names it.
      const dead = begin();
      await cluster.send(post('ses_a', 'hello'));
      await eventually(() => delivered.length === 1);
      await dead.stop();
      const worker = begin();
      await eventually(() => delivered.length === 2);
      const [callId = ''] = delivered[0]?.split(' ') ?? [];
      expect(delivered).toEqual([`${callId} 1`, `${callId} 2`]);
      expect(await cluster.count('effects', `id = '${callId}' and state = 'open'`)).toBe(1);

      await worker.stop();
      await cluster.send(completed('ses_a', callId, 'a reply'));
      await eventually(async () => (await cluster.count('effects', `state = 'open'`)) === 0);
      await first.stop();
      expect(delivered).toHaveLength(2);
    });

    it('DESIGN 6: a dispatched call that a worker names is not made again by the host that takes over', async () => {
      const cluster = await open();
      const first = await cluster.host({ times: { callSilenceMs: 1_000 } });
      await cluster.send(create('ses_a'));
      const delivered: string[] = [];
      const worker = cluster.bus.work.consume('router.turn', { concurrency: 8, ackWaitMs: 30_000 }, async (item) => {
        delivered.push(item.messageId);
      });
      await cluster.send(post('ses_a', 'hello'));
      await eventually(() => delivered.length === 1);
      const [callId = ''] = delivered;
      const names = setInterval(() => {
        const body = { v: 1, workerId: 'w1', question: 1, calls: [callId] };
        cluster.bus.notices.publish(subjectOf(addresses.heartbeats, partitionOf('ses_a')), JSON.stringify(body));
      }, 100);
      try {
        await first.stop();
        let confirmed = 0;
        cluster.bus.notices.subscribe(subjectOf(addresses.interestReplies, 'w1'), (_, body) => {
          if (body.includes(callId)) confirmed += 1;
        });
        await cluster.host({ times: { callSilenceMs: 1_000 } });
        // Three silences without heartbeats.
        await eventually(() => confirmed >= 30);
        expect(delivered).toEqual([callId]);
        expect(await cluster.count('effects', `id = '${callId}' and state = 'open' and unpublished`)).toBe(1);
      } finally {
        clearInterval(names);
        await worker.stop();
      }
    });

    it('DESIGN 6: each call is begun at once while a host stops, and another takes over', async () => {
      const cluster = await open();
      const [first] = [await cluster.host({ times: NEVER_SILENT, coalesceMs: 1 }), await cluster.host({ times: NEVER_SILENT, coalesceMs: 1 })];
      const { begun, worker } = beginCalls(cluster);
      const turns = await beginTurnsUntil(cluster, first.stop());
      await eventually(() => begun.size === turns);
      expect(Math.max(...begun.values())).toBe(1);
      await worker.stop();
    });

    it('DESIGN 6: a host that stops has released its partitions before its outbox ends, which dispatches the calls of the last commits', async () => {
      const cluster = await open();
      const host = await cluster.host({ times: NEVER_SILENT });
      const order: string[] = [];
      const { leave } = Host.prototype;
      const { stop } = Outbox.prototype;
      const left = vi.spyOn(Host.prototype, 'leave').mockImplementation(async function (this: Host) {
        await leave.call(this);
        order.push('released');
      });
      const ended = vi.spyOn(Outbox.prototype, 'stop').mockImplementation(function (this: Outbox) {
        order.push('outbox');
        return stop.call(this);
      });
      try {
        await host.stop();
        expect(order).toEqual(['released', 'outbox']);
      } finally {
        left.mockRestore();
        ended.mockRestore();
      }
    });

    it('DESIGN 6: each call is begun at once while partitions move to a host that starts', async () => {
      const cluster = await open();
      await cluster.host({ times: NEVER_SILENT, coalesceMs: 1 });
      const { begun, worker } = beginCalls(cluster);
      const second = cluster.host({ times: NEVER_SILENT, coalesceMs: 1 });
      const hasShare = second.then(({ id }) => eventually(async () => (await cluster.count('parts', `owner = '${id}'`)) > 0));
      const turns = await beginTurnsUntil(cluster, hasShare);
      await eventually(() => begun.size === turns);
      expect(Math.max(...begun.values())).toBe(1);
      await worker.stop();
    });
  });
}
