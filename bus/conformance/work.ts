import { describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '../bus.ts';
import { deliveryOf } from '../messages/attempt-number.ts';
import { Collector, depthsOf, eventually, gate, type UnderTest } from './under-test.ts';

/** A lease that no case outlasts. */
const LONG_MS = 60_000;
/** A lease that cases let expire. */
const SHORT_MS = 800;
/** One that they let expire at a given moment alone. */
const LASTING_MS = 2_000;

function consumeAll(bus: Bus, ackWaitMs = LONG_MS): Collector<WorkItem> {
  const collected = new Collector<WorkItem>();
  bus.work.consume('router.call', { concurrency: 8, ackWaitMs }, async (item) => {
    await item.ack();
    collected.add(item);
  });
  return collected;
}

function deliveriesOf(items: WorkItem[]): string[] {
  return items.map(({ body, deliveryCount: delivery }) => `${body} ${delivery}`);
}

async function hasLease(item: WorkItem): Promise<boolean> {
  return item.working().then(
    () => true,
    () => false,
  );
}

export function workCases(underTest: UnderTest): void {
  describe('work', () => {
    it('delivers an item with its message id, body and time, the first time as delivery 1', async () => {
      const { bus } = underTest();
      const collected = consumeAll(bus);
      expect(await bus.work.publish('router.call', 'w1', 'body')).toEqual({ duplicate: false });

      const [item] = await collected.atLeast(1);
      expect(item).toMatchObject({ messageId: 'w1', body: 'body', deliveryCount: 1 });
      expect(item?.publishedAtMs).toBeGreaterThan(0);
    });

    it('stores a repeated message id once', async () => {
      const { bus } = underTest();
      await bus.work.publish('router.call', 'w1', 'a');
      expect(await bus.work.publish('router.call', 'w1', 'a')).toEqual({ duplicate: true });
      await bus.work.publish('router.call', 'w2', 'b');

      expect(deliveriesOf(await consumeAll(bus).atLeast(2)).sort()).toEqual(['a 1', 'b 1']);
    });

    it('DESIGN 12: reports how many items of each kind wait or are in flight', async () => {
      const { bus } = underTest();
      const begun = gate();
      const done = gate();
      await bus.work.publish('tool', 'in hand', 'body');
      bus.work.consume('tool', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
        begun.open();
        await done.opened;
        await item.ack();
      });
      await begun.opened;
      await bus.work.publish('tool', 'waiting', 'body');
      await bus.work.publish('delivery', 'not consumed', 'body');

      expect(await depthsOf(bus)).toEqual({ 'router.turn': 0, 'router.call': 0, tool: 2, delivery: 1 });
      done.open();
      await eventually(
        () => depthsOf(bus),
        ({ tool }) => tool === 0,
      );
      expect(await depthsOf(bus)).toMatchObject({ delivery: 1 });
    });

    it('separates the kinds', async () => {
      const { bus } = underTest();
      const calls = consumeAll(bus);
      const turns = new Collector<string>();
      bus.work.consume('router.turn', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
        await item.ack();
        turns.add(item.body);
      });
      await bus.work.publish('router.turn', 't1', 'turn');
      await bus.work.publish('router.call', 'c1', 'call');

      expect(await turns.atLeast(1)).toEqual(['turn']);
      expect(deliveriesOf(await calls.atLeast(1))).toEqual(['call 1']);
    });

    it('redelivers a nakked item, after the delay and marked', async () => {
      const { bus } = underTest();
      const collected = new Collector<{ delivery: number; attempt: number; atMs: number }>();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
        const atMs = performance.now();
        await (item.deliveryCount === 1 ? item.nak(300) : item.deliveryCount === 2 ? item.nak(0) : item.ack());
        collected.add({ delivery: item.deliveryCount, attempt: item.attempt ?? item.deliveryCount, atMs });
      });
      await bus.work.publish('router.call', 'w1', 'a');

      const [first, second, third] = await collected.atLeast(3);
      expect([first?.delivery, second?.delivery, third?.delivery]).toEqual([1, 2, 3]);
      expect([first, second, third].map((item) => deliveryOf(item?.attempt ?? 0))).toEqual([1, 2, 3]);
      expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(290);
    });

    it('never redelivers an item that was acked or dropped', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      bus.work.consume('router.call', { concurrency: 4, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.body === 'acked') await item.ack();
        if (item.body === 'dropped') await item.term('it can never be done');
        if (item.body === 'forgotten' && item.deliveryCount >= 3) await item.ack();
      });
      for (const body of ['acked', 'dropped', 'forgotten']) await bus.work.publish('router.call', body, body);

      // At the third delivery of the unsettled item, twice the lease has passed for all. A process without CPU may read none of a delivery, and a later one then.
      await eventually(
        async () => collected.items,
        (all) => all.some(({ body, deliveryCount }) => body === 'forgotten' && deliveryCount >= 3),
      );
      expect(deliveriesOf(collected.items.filter(({ body }) => body !== 'forgotten')).sort()).toEqual(['acked 1', 'dropped 1']);
    });

    it('redelivers an item when its handler throws', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.deliveryCount === 1) throw new Error('the worker stumbled');
        await item.ack();
      });
      await bus.work.publish('router.call', 'w1', 'a');

      expect(deliveriesOf(await collected.atLeast(2))).toEqual(['a 1', 'a 2']);
    });

    it('DESIGN 6: an item stays with the worker that extends its lease', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      const done = gate();
      bus.work.consume('router.call', { concurrency: 2, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.body === 'long') {
          const heartbeat = setInterval(() => item.working().catch(collected.add), SHORT_MS / 8);
          await done.opened;
          clearInterval(heartbeat);
          await item.ack();
        } else if (item.deliveryCount >= 3) await item.ack();
      });
      await bus.work.publish('router.call', 'long', 'long');
      await bus.work.publish('router.call', 'forgotten', 'forgotten');
      const deliveries = deliveriesOf(await collected.atLeast(4));
      done.open();

      expect(deliveries.filter((delivery) => delivery.startsWith('long'))).toEqual(['long 1']);
    });

    it('DESIGN 6: an item is redelivered when its worker does not extend the lease, and a late extension fails with lease lost', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      const done = gate();
      bus.work.consume('router.call', { concurrency: 2, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.deliveryCount === 1) await done.opened;
        else await item.ack();
      });
      await bus.work.publish('router.call', 'w1', 'a');
      const [first, second] = await collected.atLeast(2);

      expect(second?.deliveryCount).toBe(2);
      await expect(first?.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
      done.open();
    });

    it('ignores the nak of a worker whose lease is lost', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      const done = gate();
      bus.work.consume('router.call', { concurrency: 2, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.body === 'next') await item.ack();
        else if (item.deliveryCount === 1) await done.opened;
      });
      await bus.work.publish('router.call', 'w1', 'a');
      const [first, second] = await collected.atLeast(2);
      await first?.nak(0);
      await second?.ack();
      await bus.work.publish('router.call', 'next', 'next');
      await collected.atLeast(3);
      done.open();

      expect(deliveriesOf(collected.items)).toEqual(['a 1', 'a 2', 'next 1']);
    });

    it('accepts an ack after the lease was lost', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      const done = gate();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: SHORT_MS }, async (item) => {
        collected.add(item);
        if (item.body === 'slow') {
          await done.opened;
          await item.ack();
        } else if (item.deliveryCount >= 2) await item.ack();
      });
      const other = new Collector<WorkItem>();
      bus.work.consume('router.turn', { concurrency: 1, ackWaitMs: SHORT_MS }, async (item) => {
        other.add(item);
        if (item.deliveryCount >= 3) await item.ack();
      });
      await bus.work.publish('router.call', 'slow', 'slow');
      await collected.atLeast(1);
      // During three deliveries of this item, the slow one's lease expires.
      await bus.work.publish('router.turn', 'measure', 'measure');
      await other.atLeast(3);
      done.open();
      await bus.work.publish('router.call', 'next', 'next');
      const deliveries = deliveriesOf(await collected.atLeast(3));

      expect(deliveries).toEqual(['slow 1', 'next 1', 'next 2']);
    });

    it('DESIGN 6: a consumer never gets more items than it has slots', async () => {
      const { bus } = underTest();
      const done = new Collector<string>();
      const running = new Collector<() => void>();
      let now = 0;
      let most = 0;
      bus.work.consume('router.call', { concurrency: 3, ackWaitMs: LONG_MS }, async (item) => {
        now += 1;
        most = Math.max(most, now);
        const go = gate();
        running.add(go.open);
        await go.opened;
        await item.ack();
        now -= 1;
        done.add(item.body);
      });
      await Promise.all(Array.from({ length: 12 }, (_, index) => bus.work.publish('router.call', `w${index}`, String(index))));
      await running.atLeast(3);
      for (let index = 0; index < 12; index += 1) (await running.atLeast(index + 1))[index]?.();

      expect(new Set(await done.atLeast(12)).size).toBe(12);
      expect(most).toBe(3);
    });

    it('shares items between consumers', async () => {
      const { bus } = underTest();
      const consumedBy = new Collector<string>();
      const done = gate();
      for (const name of ['one', 'two']) {
        bus.work.consume('router.call', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
          consumedBy.add(name);
          await done.opened;
          await item.ack();
        });
      }
      await bus.work.publish('router.call', 'w1', 'a');
      await bus.work.publish('router.call', 'w2', 'b');

      expect([...(await consumedBy.atLeast(2))].sort()).toEqual(['one', 'two']);
      done.open();
    });

    it('delivers to the others what a stopped consumer did not receive', async () => {
      const { bus } = underTest();
      const taken = new Collector<string>();
      const done = gate();
      const stopping = bus.work.consume('router.call', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
        taken.add(`first ${item.body}`);
        await done.opened;
        await item.ack();
      });
      await bus.work.publish('router.call', 'w1', 'a');
      await taken.atLeast(1);
      const stopped = stopping.stop();
      await bus.work.publish('router.call', 'w2', 'b');
      const rest = consumeAll(bus);
      expect(deliveriesOf(await rest.atLeast(1)).map((delivery) => delivery.slice(0, 1))).toEqual(['b']);
      done.open();
      await stopped;

      expect(taken.items).toEqual(['first a']);
    });
  });
}

export function workReopenCases(underTest: UnderTest): void {
  describe('work: opened again', () => {
    it('has the items that were not delivered, and not the ones that were done', async () => {
      const { bus } = underTest();
      const done = consumeAll(bus);
      await bus.work.publish('router.call', 'done', 'done');
      await done.atLeast(1);
      await bus.work.publish('router.turn', 'left', 'left');
      await bus.close();
      const again = await underTest().reopen();
      const turns = new Collector<string>();
      again.work.consume('router.turn', { concurrency: 1, ackWaitMs: LONG_MS }, async (item) => {
        await item.ack();
        turns.add(item.body);
      });
      const calls = consumeAll(again);
      await again.work.publish('router.call', 'new', 'new');

      expect(await turns.atLeast(1)).toEqual(['left']);
      expect((await calls.atLeast(1)).map(({ body }) => body)).toEqual(['new']);
    });

    it('begins no delivery whose lease has expired before the process read it', async () => {
      const { bus } = underTest();
      const ids = ['w1', 'w2', 'w3', 'w4'];
      for (const id of ids) await bus.work.publish('tool', id, id);
      await bus.close();
      const again = await underTest().reopen();
      const begun: { id: string; isHeld: boolean }[] = [];
      let isPaused = false;
      again.work.consume('tool', { concurrency: 8, ackWaitMs: LASTING_MS }, async (item) => {
        // The process reads nothing for longer than all leases: the item of this handler is redelivered, too.
        if (!isPaused) {
          isPaused = true;
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LASTING_MS + SHORT_MS);
          return;
        }
        begun.push({ id: item.messageId, isHeld: await hasLease(item) });
        await item.ack();
      });

      await eventually(
        () => depthsOf(again),
        ({ tool }) => tool === 0,
      );
      expect(begun.sort((a, b) => a.id.localeCompare(b.id))).toEqual(ids.map((id) => ({ id, isHeld: true })));
    });

    it('redelivers an item that was in flight at the end, marked', async () => {
      const { bus } = underTest();
      const begun = gate();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: SHORT_MS }, async () => begun.open());
      await bus.work.publish('router.call', 'w1', 'a');
      await begun.opened;
      await bus.close();
      const again = await underTest().reopen();
      const [item] = await consumeAll(again, SHORT_MS).atLeast(1);

      expect(item).toMatchObject({ messageId: 'w1', body: 'a' });
      expect(item?.deliveryCount).toBeGreaterThanOrEqual(2);
    });

    it('DESIGN 6: items in flight at a killed worker are redelivered, marked, and its undelivered items are delivered too', async () => {
      const { bus } = underTest();
      const begun = gate();
      const never = gate();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: SHORT_MS }, async () => {
        begun.open();
        await never.opened;
      });
      await bus.work.publish('router.call', 'in hand', 'in hand');
      await begun.opened;
      await bus.work.publish('router.call', 'waiting', 'waiting');
      const successor = await underTest().reopen();
      const items = await consumeAll(successor, SHORT_MS).atLeast(2);
      never.open();

      expect(items.find(({ messageId }) => messageId === 'in hand')?.deliveryCount).toBeGreaterThanOrEqual(2);
      expect(items.map(({ messageId }) => messageId).sort()).toEqual(['in hand', 'waiting']);
    });

    it('still deduplicates a message id', async () => {
      const { bus } = underTest();
      await bus.work.publish('router.call', 'w1', 'a');
      await bus.close();
      const again = await underTest().reopen();

      expect(await again.work.publish('router.call', 'w1', 'a')).toEqual({ duplicate: true });
    });
  });
}

export function workWindowCases(underTest: UnderTest): void {
  describe('work: later', () => {
    it('stores a message id again once the window is over, and not before', async () => {
      const { bus, windows, pass } = underTest();
      await bus.work.publish('router.call', 'w1', 'a');
      await pass(windows.dedupeMs / 2);
      expect(await bus.work.publish('router.call', 'w1', 'a')).toEqual({ duplicate: true });
      await pass(windows.dedupeMs);
      await eventually(
        () => bus.work.publish('router.call', 'w1', 'a'),
        ({ duplicate }) => !duplicate,
      );

      expect(deliveriesOf(await consumeAll(bus).atLeast(2))).toEqual(['a 1', 'a 1']);
    });
  });
}
