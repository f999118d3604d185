import { describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '../bus.ts';
import { Arrivals, eventually, gate, type UnderTest } from './under-test.ts';

/** Longer than any case takes: a lease that must not lapse. */
const LONG_MS = 60_000;
const SHORT_MS = 400;

/** Consumes calls into a list, and does with each what is asked for. */
function consume(bus: Bus, concurrency: number, handle: (item: WorkItem) => Promise<void>, ackWaitMs = LONG_MS): Arrivals<WorkItem> {
  const arrivals = new Arrivals<WorkItem>();
  bus.work.consume('router.call', { concurrency, ackWaitMs }, async (item) => {
    arrivals.add({ ...item });
    await handle(item);
  });
  return arrivals;
}

/** Offers one item after another until one is handed over: a consumer has to be known at the broker before it is offered anything. */
async function untilTaken(bus: Bus, arrivals: Arrivals<WorkItem>): Promise<void> {
  let tries = 0;
  const offer = async () => {
    tries += 1;
    bus.work.offer('router.call', `first-${tries}`, 'first');
    return arrivals.items.length;
  };
  await eventually(offer, (taken) => taken > 0);
}

const bodiesOf = (items: WorkItem[]) => items.map(({ body, delivery }) => `${body} ${delivery}`).filter((text) => !text.startsWith('first'));

export function offerCases(underTest: UnderTest): void {
  describe('offers', () => {
    it('DESIGN 6: hands an item to a consumer that is free, the first time as delivery 1, and stores it nowhere', async () => {
      const { bus } = underTest();
      const held = gate();
      const arrivals = consume(bus, 64, () => held.opened);
      await untilTaken(bus, arrivals);
      bus.work.offer('router.call', 'o1', 'body');

      const items = await eventually(
        async () => arrivals.items,
        (all) => all.some(({ messageId }) => messageId === 'o1'),
      );
      const item = items.find(({ messageId }) => messageId === 'o1');
      expect(item).toMatchObject({ messageId: 'o1', body: 'body', delivery: 1 });
      expect(item?.publishedAtMs).toBeGreaterThan(0);
      expect(await bus.work.depths()).toMatchObject({ 'router.call': 0 });
      held.open();
    });

    it('tells its publisher of an item that nobody is there for', async () => {
      const { bus } = underTest();
      const refused = new Arrivals<string>();
      const subscription = bus.work.onRefused(refused.add);
      bus.work.offer('router.call', 'o1', 'body');

      expect(await refused.atLeast(1)).toEqual(['o1']);
      await subscription.stop();
    });

    it('stores an item whose consumer has its hands full, which comes once they are free, as for the first time', async () => {
      const { bus } = underTest();
      const held = gate();
      const arrivals = consume(bus, 8, async (item) => {
        await held.opened;
        await item.ack();
      });
      await untilTaken(bus, arrivals);
      const ids = Array.from({ length: 30 }, (_, n) => `o${n}`);
      for (const id of ids) bus.work.offer('router.call', id, id);
      await eventually(
        () => bus.work.depths(),
        (depths) => depths['router.call'] > 0,
      );
      expect(arrivals.items.length).toBeLessThanOrEqual(8);
      held.open();

      await eventually(
        async () => bodiesOf(arrivals.items).length,
        (count) => count >= ids.length,
      );
      expect(bodiesOf(arrivals.items).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
      await eventually(
        () => bus.work.depths(),
        (depths) => depths['router.call'] === 0,
      );
    });

    it('leaves every slot that is free to what waits in the queue, though none becomes free meanwhile', async () => {
      const { bus } = underTest();
      const held = gate();
      const arrivals = consume(bus, 40, async (item) => {
        await held.opened;
        await item.ack();
      });
      const ids = Array.from({ length: 40 }, (_, n) => `w${n}`);
      await Promise.all(ids.map((id) => bus.work.publish('router.call', id, id)));

      expect(bodiesOf(await arrivals.atLeast(40)).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
      held.open();
    });

    it('delivers an item that its worker sent back again, marked, and to whoever is there then', async () => {
      const { bus } = underTest();
      const arrivals = consume(bus, 64, (item) => (item.delivery === 1 ? item.nak(50) : item.ack()));
      await untilTaken(bus, arrivals);
      bus.work.offer('router.call', 'o1', 'body');

      await eventually(
        async () => bodiesOf(arrivals.items),
        (all) => all.includes('body 2'),
      );
      expect(bodiesOf(arrivals.items)).toEqual(['body 1', 'body 2']);
    });

    it('counts the deliveries of an item that was stored behind them', async () => {
      const { bus } = underTest();
      const arrivals = consume(bus, 4, (item) => (item.delivery < 4 ? item.nak(0) : item.ack()));
      await bus.work.publish('router.call', 'w1', 'body', 2);

      await arrivals.atLeast(2);
      expect(bodiesOf(arrivals.items)).toEqual(['body 3', 'body 4']);
    });

    it('never delivers an item again whose worker failed, dropped it or was done with it: whoever offered it asks again', async () => {
      const { bus } = underTest();
      const arrivals = consume(
        bus,
        64,
        async (item) => {
          if (item.body === 'dropped') await item.term('it can never be done');
          if (item.body === 'acked') await item.ack();
          if (item.body === 'failed') throw new Error('the worker stumbled');
          if (item.body === 'stored' && item.delivery === 3) await item.ack();
        },
        SHORT_MS,
      );
      await untilTaken(bus, arrivals);
      for (const body of ['dropped', 'acked', 'failed', 'forgotten']) bus.work.offer('router.call', body, body);
      await bus.work.publish('router.call', 'stored', 'stored');

      // Twice the lease has passed for all of them when the stored one comes for the third time.
      await eventually(
        async () => bodiesOf(arrivals.items),
        (all) => all.includes('stored 3'),
      );
      expect(bodiesOf(arrivals.items).sort()).toEqual(['acked 1', 'dropped 1', 'failed 1', 'forgotten 1', 'stored 1', 'stored 2', 'stored 3']);
    });

    it('holds the lease of an item for as long as its worker says that it is at it, and no longer', async () => {
      const { bus } = underTest();
      const said = new Arrivals<string>();
      const word = (item: WorkItem) =>
        item.working().then(
          () => said.add('held'),
          (error: { code?: string }) => said.add(String(error.code)),
        );
      const arrivals = consume(
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
      await untilTaken(bus, arrivals);
      bus.work.offer('router.call', 'o1', 'body');

      expect(await said.atLeast(2)).toEqual(['held', 'bus.lease_lost']);
    });

    it('waits for what was offered when its consumer stops, and offers it nothing more', async () => {
      const { bus } = underTest();
      const held = gate();
      const arrivals = new Arrivals<WorkItem>();
      const consumer = bus.work.consume('router.call', { concurrency: 64, ackWaitMs: LONG_MS }, async (item) => {
        arrivals.add(item);
        await held.opened;
      });
      await untilTaken(bus, arrivals);
      let stopped = false;
      const stopping = consumer.stop().then(() => {
        stopped = true;
      });
      const refused = new Arrivals<string>();
      bus.work.onRefused(refused.add);
      await eventually(
        async () => {
          bus.work.offer('router.call', 'late', 'late');
          return refused.items.length;
        },
        (count) => count > 0,
      );
      expect(bodiesOf(arrivals.items)).toEqual([]);
      expect(stopped).toBe(false);
      held.open();
      await stopping;
    });

    it('refuses to offer what can not be an address, and what is too large for a message', () => {
      const { bus } = underTest();
      expect(() => bus.work.offer('router.call', 'a.b', 'body')).toThrow(expect.objectContaining({ code: 'bus.invalid_subject' }));
      expect(() => bus.work.offer('router.call', 'o1', 'x'.repeat(600_000))).toThrow(expect.objectContaining({ code: 'bus.body_too_large' }));
    });

    it('brings a body that looks like a reference as it is', async () => {
      const { bus } = underTest();
      const arrivals = consume(bus, 64, (item) => item.ack());
      await untilTaken(bus, arrivals);
      bus.work.offer('router.call', 'o1', 'blob:none');

      await eventually(
        async () => bodiesOf(arrivals.items),
        (all) => all.length > 0,
      );
      expect(bodiesOf(arrivals.items)).toEqual(['blob:none 1']);
    });
  });
}
