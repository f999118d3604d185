import { describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '../bus.ts';
import { Collector, eventually, gate, type UnderTest } from './under-test.ts';

/** A lease that no case outlasts. */
const LONG_MS = 60_000;
const SHORT_MS = 400;

/** Consumes router calls into a list, with a handler. */
function consume(bus: Bus, concurrency: number, handle: (item: WorkItem) => Promise<void>, ackWaitMs = LONG_MS): Collector<WorkItem> {
  const collected = new Collector<WorkItem>();
  bus.work.consume('router.call', { concurrency, ackWaitMs }, async (item) => {
    collected.add({ ...item });
    await handle(item);
  });
  return collected;
}

/** Consumes router calls that are acknowledged once `blocked` is open. */
function consumeBlocked(bus: Bus, concurrency: number) {
  const blocked = gate();
  const collected = consume(bus, concurrency, async (item) => {
    await blocked.opened;
    await item.ack();
  });
  return { collected, blocked };
}

/** Dispatches until one item is delivered: a new consumer is not known to the broker at once. */
async function untilAcquired(bus: Bus, collected: Collector<WorkItem>): Promise<void> {
  let tries = 0;
  const dispatch = async () => {
    tries += 1;
    bus.work.dispatch('router.call', `first-${tries}`, 'first');
    return collected.items.length;
  };
  await eventually(dispatch, (taken) => taken > 0);
}

const bodiesOf = (items: WorkItem[]) => items.map(({ body, deliveryCount: delivery }) => `${body} ${delivery}`).filter((text) => !text.startsWith('first'));

export function dispatchCases(underTest: UnderTest): void {
  describe('dispatched items', () => {
    it('DESIGN 6: hands an item to a consumer that is free, the first time as delivery 1, and stores it nowhere', async () => {
      const { bus } = underTest();
      const blocked = gate();
      const collected = consume(bus, 64, () => blocked.opened);
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', 'body');

      const items = await eventually(
        async () => collected.items,
        (all) => all.some(({ messageId }) => messageId === 'o1'),
      );
      const item = items.find(({ messageId }) => messageId === 'o1');
      expect(item).toMatchObject({ messageId: 'o1', body: 'body', deliveryCount: 1 });
      expect(item?.publishedAtMs).toBeGreaterThan(0);
      expect(await bus.work.depths()).toMatchObject({ 'router.call': 0 });
      blocked.open();
    });

    it('reports to its publisher an item that reached no consumer', async () => {
      const { bus } = underTest();
      const refused = new Collector<string>();
      const subscription = bus.work.onRefused(refused.add);
      bus.work.dispatch('router.call', 'o1', 'body');

      expect(await refused.atLeast(1)).toEqual(['o1']);
      await subscription.stop();
    });

    it('stores an item whose consumer has no free slot, and delivers it once there is one, as for the first time', async () => {
      const { bus } = underTest();
      const { collected, blocked } = consumeBlocked(bus, 8);
      await untilAcquired(bus, collected);
      const ids = Array.from({ length: 30 }, (_, n) => `o${n}`);
      for (const id of ids) bus.work.dispatch('router.call', id, id);
      await eventually(
        () => bus.work.depths(),
        (depths) => depths['router.call'] > 0,
      );
      expect(collected.items.length).toBeLessThanOrEqual(8);
      blocked.open();

      await eventually(
        async () => bodiesOf(collected.items).length,
        (count) => count >= ids.length,
      );
      expect(bodiesOf(collected.items).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
      await eventually(
        () => bus.work.depths(),
        (depths) => depths['router.call'] === 0,
      );
    });

    it('leaves every slot that is free to what waits in the queue, though none becomes free meanwhile', async () => {
      const { bus } = underTest();
      const { collected, blocked } = consumeBlocked(bus, 40);
      const ids = Array.from({ length: 40 }, (_, n) => `w${n}`);
      await Promise.all(ids.map((id) => bus.work.publish('router.call', id, id)));

      expect(bodiesOf(await collected.atLeast(40)).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
      blocked.open();
    });

    it('redelivers an item after a nak, with its delivery count, to any consumer', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 64, (item) => (item.deliveryCount === 1 ? item.nak(50) : item.ack()));
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', 'body');

      await eventually(
        async () => bodiesOf(collected.items),
        (all) => all.includes('body 2'),
      );
      expect(bodiesOf(collected.items)).toEqual(['body 1', 'body 2']);
    });

    it('counts the deliveries of an item that was stored behind them', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 4, (item) => (item.deliveryCount < 4 ? item.nak(0) : item.ack()));
      await bus.work.publish('router.call', 'w1', 'body', 2);

      await collected.atLeast(2);
      expect(bodiesOf(collected.items)).toEqual(['body 3', 'body 4']);
    });

    it('redelivers no item whose handler failed, dropped or acknowledged it: its publisher queues it', async () => {
      const { bus } = underTest();
      const collected = consume(
        bus,
        64,
        async (item) => {
          if (item.body === 'dropped') await item.term('it can never be done');
          if (item.body === 'acked') await item.ack();
          if (item.body === 'failed') throw new Error('the worker stumbled');
          if (item.body === 'stored' && item.deliveryCount === 3) await item.ack();
        },
        SHORT_MS,
      );
      await untilAcquired(bus, collected);
      for (const body of ['dropped', 'acked', 'failed', 'forgotten']) bus.work.dispatch('router.call', body, body);
      await bus.work.publish('router.call', 'stored', 'stored');

      // At the third delivery of the stored item, twice the lease has passed for all.
      await eventually(
        async () => bodiesOf(collected.items),
        (all) => all.includes('stored 3'),
      );
      expect(bodiesOf(collected.items).sort()).toEqual(['acked 1', 'dropped 1', 'failed 1', 'forgotten 1', 'stored 1', 'stored 2', 'stored 3']);
    });

    it('holds the lease of an item for as long as its worker says that it is at it, and no longer', async () => {
      const { bus } = underTest();
      const said = new Collector<string>();
      const word = (item: WorkItem) =>
        item.working().then(
          () => said.add('held'),
          (error: { code?: string }) => said.add(String(error.code)),
        );
      const collected = consume(
        bus,
        64,
        async (item) => {
          if (item.body !== 'body') return;
          await word(item);
          const lapsesAt = performance.now() + SHORT_MS;
          await eventually(
            async () => performance.now(),
            (now) => now > lapsesAt,
          );
          await word(item);
        },
        SHORT_MS,
      );
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', 'body');

      expect(await said.atLeast(2)).toEqual(['held', 'bus.lease_lost']);
    });

    it('waits for dispatched items when their consumer stops, and dispatches no more to it', async () => {
      const { bus } = underTest();
      const blocked = gate();
      const collected = new Collector<WorkItem>();
      const consumer = bus.work.consume('router.call', { concurrency: 64, ackWaitMs: LONG_MS }, async (item) => {
        collected.add(item);
        await blocked.opened;
      });
      await untilAcquired(bus, collected);
      let stopped = false;
      const stopping = consumer.stop().then(() => {
        stopped = true;
      });
      const refused = new Collector<string>();
      bus.work.onRefused(refused.add);
      await eventually(
        async () => {
          bus.work.dispatch('router.call', 'late', 'late');
          return refused.items.length;
        },
        (count) => count > 0,
      );
      expect(bodiesOf(collected.items)).toEqual([]);
      expect(stopped).toBe(false);
      blocked.open();
      await stopping;
    });

    it('refuses to dispatch under an id that is no token of a subject, and a body that is too large for a message', () => {
      const { bus } = underTest();
      expect(() => bus.work.dispatch('router.call', 'a.b', 'body')).toThrow(expect.objectContaining({ code: 'bus.invalid_subject' }));
      expect(() => bus.work.dispatch('router.call', 'o1', 'x'.repeat(600_000))).toThrow(expect.objectContaining({ code: 'bus.body_too_large' }));
    });

    it('brings a body that looks like a reference as it is', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 64, (item) => item.ack());
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', 'blob:none');

      await eventually(
        async () => bodiesOf(collected.items),
        (all) => all.length > 0,
      );
      expect(bodiesOf(collected.items)).toEqual(['blob:none 1']);
    });
  });
}
