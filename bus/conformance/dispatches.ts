import { describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '../bus.ts';
import { Collector, depthsOf, eventually, gate, type UnderTest } from './under-test.ts';

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

/** Dispatches until one item is delivered: the broker does not know a new consumer at once. */
async function untilAcquired(bus: Bus, collected: Collector<WorkItem>): Promise<void> {
  let tries = 0;
  const dispatch = async () => {
    tries += 1;
    bus.work.dispatch('router.call', `first-${tries}`, Buffer.from('first'));
    return collected.items.length;
  };
  await eventually(dispatch, (taken) => taken > 0);
}

const bodiesOf = (items: WorkItem[]) => items.map(({ body, deliveryCount: delivery }) => `${body} ${delivery}`).filter((text) => !text.startsWith('first'));

export function dispatchCases(underTest: UnderTest): void {
  describe('dispatches', () => {
    it('DESIGN 6: a dispatch delivers an item to a free consumer, the first time as delivery 1, and stores it nowhere', async () => {
      const { bus } = underTest();
      const blocked = gate();
      const collected = consume(bus, 64, () => blocked.opened);
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', Buffer.from('body'));

      const items = await eventually(
        async () => collected.items,
        (all) => all.some(({ messageId }) => messageId === 'o1'),
      );
      const item = items.find(({ messageId }) => messageId === 'o1');
      expect(item).toMatchObject({ messageId: 'o1', body: 'body', deliveryCount: 1 });
      expect(item?.publishedAtMs).toBeGreaterThan(0);
      expect(await depthsOf(bus)).toMatchObject({ 'router.call': 0 });
      blocked.open();
    });

    it('report an item without a consumer to its publisher', async () => {
      const { bus } = underTest();
      const refused = new Collector<string>();
      const subscription = bus.work.onRefused(refused.add);
      bus.work.dispatch('router.call', 'o1', Buffer.from('body'));

      expect(await refused.atLeast(1)).toEqual(['o1']);
      await subscription.stop();
    });

    it('store an item whose consumer has no free slot; it is delivered once one is free, as for the first time', async () => {
      const { bus } = underTest();
      const { collected, blocked } = consumeBlocked(bus, 8);
      await untilAcquired(bus, collected);
      const ids = Array.from({ length: 30 }, (_, n) => `o${n}`);
      for (const id of ids) bus.work.dispatch('router.call', id, Buffer.from(id));
      await eventually(
        () => depthsOf(bus),
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
        () => depthsOf(bus),
        (depths) => depths['router.call'] === 0,
      );
    });

    it('DESIGN 6: report an item that a consumer has stored to its publisher: on the way to a busy one, or by a nak', async () => {
      const { bus } = underTest();
      const stored = new Collector<string>();
      const subscription = bus.work.onStored(stored.add);
      const blocked = gate();
      const begun = new Collector<string>();
      bus.work.consume('router.turn', { concurrency: 8, ackWaitMs: LONG_MS }, async (item) => {
        begun.add(`${item.messageId} ${item.deliveryCount}`);
        if (item.messageId === 'nakked' && item.deliveryCount === 1) return item.nak(0);
        await blocked.opened;
        await item.ack();
      });
      let tries = 0;
      await eventually(
        async () => {
          tries += 1;
          bus.work.dispatch('router.turn', `first-${tries}`, Buffer.from('first'));
          return begun.items.length;
        },
        (taken) => taken > 0,
      );
      bus.work.dispatch('router.turn', 'nakked', Buffer.from('body'));
      await eventually(
        async () => stored.items,
        (ids) => ids.includes('nakked'),
      );
      const ids = Array.from({ length: 30 }, (_, n) => `o${n}`);
      for (const id of ids) bus.work.dispatch('router.turn', id, Buffer.from(id));
      const begunIds = () => begun.items.map((text) => text.split(' ')[0] ?? '');
      // Some of what is stored is begun by a pull.
      await eventually(
        async () => new Set([...stored.items, ...begunIds()].filter((id) => id.startsWith('o'))).size,
        (count) => count === ids.length,
      );
      const reported = stored.items.filter((id) => id.startsWith('o'));
      const depths = await depthsOf(bus);
      expect(reported.length).toBeGreaterThan(0);
      expect(depths['router.turn']).toBeGreaterThanOrEqual(reported.length);
      blocked.open();
      await eventually(
        async () => begunIds(),
        (all) => reported.every((id) => all.includes(id)),
      );
      await eventually(
        () => depthsOf(bus),
        (left) => left['router.turn'] === 0,
      );
      await subscription.stop();
    });

    it('leave every free slot to items that wait in the queue, though none becomes free meanwhile', async () => {
      const { bus } = underTest();
      const { collected, blocked } = consumeBlocked(bus, 40);
      const ids = Array.from({ length: 40 }, (_, n) => `w${n}`);
      await Promise.all(ids.map((id) => bus.work.publish('router.call', id, id)));

      expect(bodiesOf(await collected.atLeast(40)).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
      blocked.open();
    });

    it('redeliver an item that its worker nakked, marked, to any consumer', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 64, (item) => (item.deliveryCount === 1 ? item.nak(50) : item.ack()));
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', Buffer.from('body'));

      await eventually(
        async () => bodiesOf(collected.items),
        (all) => all.includes('body 2'),
      );
      expect(bodiesOf(collected.items)).toEqual(['body 1', 'body 2']);
    });

    it('count the deliveries of an item that was stored after them', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 4, (item) => (item.deliveryCount < 4 ? item.nak(0) : item.ack()));
      await bus.work.publish('router.call', 'w1', 'body', 2);

      await collected.atLeast(2);
      expect(bodiesOf(collected.items)).toEqual(['body 3', 'body 4']);
    });

    it('never redeliver an item that its worker failed, dropped or finished: its publisher dispatches again', async () => {
      const { bus } = underTest();
      const collected = consume(
        bus,
        64,
        async (item) => {
          if (item.body === 'dropped') await item.term('it can never be done');
          if (item.body === 'acked') await item.ack();
          if (item.body === 'failed') throw new Error('the worker stumbled');
          if (item.body === 'stored' && item.deliveryCount >= 3) await item.ack();
        },
        SHORT_MS,
      );
      await untilAcquired(bus, collected);
      for (const body of ['dropped', 'acked', 'failed', 'forgotten']) bus.work.dispatch('router.call', body, Buffer.from(body));
      await bus.work.publish('router.call', 'stored', 'stored');

      // At the third delivery of the stored item, twice the lease has passed for all. A process without CPU may read none of a delivery, and a later one then.
      await eventually(
        async () => collected.items,
        (all) => all.some(({ body, deliveryCount }) => body === 'stored' && deliveryCount >= 3),
      );
      const others = bodiesOf(collected.items.filter(({ body }) => body !== 'stored'));
      expect(others.sort()).toEqual(['acked 1', 'dropped 1', 'failed 1', 'forgotten 1']);
    });

    it('hold the lease of an item for as long as its worker extends it, and no longer', async () => {
      const { bus } = underTest();
      const outcomes = new Collector<string>();
      const word = (item: WorkItem) =>
        item.working().then(
          () => outcomes.add('held'),
          (error: { code?: string }) => outcomes.add(String(error.code)),
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
      bus.work.dispatch('router.call', 'o1', Buffer.from('body'));

      expect(await outcomes.atLeast(2)).toEqual(['held', 'bus.lease_lost']);
    });

    it('are waited for when their consumer stops, which gets nothing more', async () => {
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
          bus.work.dispatch('router.call', 'late', Buffer.from('late'));
          return refused.items.length;
        },
        (count) => count > 0,
      );
      expect(bodiesOf(collected.items)).toEqual([]);
      expect(stopped).toBe(false);
      blocked.open();
      await stopping;
    });

    it('are refused for what can not be an address, and for what is too large for a message', () => {
      const { bus } = underTest();
      expect(() => bus.work.dispatch('router.call', 'a.b', Buffer.from('body'))).toThrow(expect.objectContaining({ code: 'bus.invalid_subject' }));
      expect(() => bus.work.dispatch('router.call', 'o1', Buffer.from('x'.repeat(bus.work.maxDispatchBytes() + 1)))).toThrow(
        expect.objectContaining({ code: 'bus.body_too_large' }),
      );
    });

    it('DESIGN 3: deliver the largest body, and store it unchanged when no slot is free', async () => {
      const { bus } = underTest();
      const most = bus.work.maxDispatchBytes();
      expect(most).toBeGreaterThan(1_000_000);
      const { collected, blocked } = consumeBlocked(bus, 8);
      await untilAcquired(bus, collected);
      // With its mark and headers it must still fit a message.
      const ids = Array.from({ length: 12 }, (_, n) => `o${n}`);
      for (const id of ids) bus.work.dispatch('router.call', id, Buffer.from(`text:${id}`.padEnd(most, 'x')));
      await eventually(
        () => depthsOf(bus),
        (depths) => depths['router.call'] > 0,
      );
      blocked.open();

      const large = () => collected.items.filter(({ messageId }) => ids.includes(messageId));
      await eventually(
        async () => large().length,
        (count) => count >= ids.length,
      );
      for (const { messageId, body } of large()) expect(body === `text:${messageId}`.padEnd(most, 'x')).toBe(true);
    });

    it('deliver a long body as bytes, too, until it is dropped', async () => {
      const { bus } = underTest();
      const long = `é${'x'.repeat(100_000)}`;
      const seen = new Collector<unknown>();
      const handle = async (item: WorkItem) => {
        if (item.messageId !== 'long') return item.ack();
        const bytes = item.bytes ? Buffer.from(item.bytes).toString() : null;
        seen.add([item.deliveryCount, item.body === long, bytes === null ? null : bytes === long]);
        item.body = '';
        seen.add([item.body, item.bytes ?? null]);
        await (item.deliveryCount === 1 ? item.nak(0) : item.ack());
      };
      const collected = new Collector<WorkItem>();
      bus.work.consume('router.call', { concurrency: 64, ackWaitMs: LONG_MS }, async (item) => {
        collected.add(item);
        await handle(item);
      });
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'long', Buffer.from(long));

      // What its worker gives back is stored whole, and comes as text.
      expect(await seen.atLeast(4)).toEqual([
        [1, true, true],
        ['', null],
        [2, true, null],
        ['', null],
      ]);
    });

    it('deliver a body that looks like a reference unchanged', async () => {
      const { bus } = underTest();
      const collected = consume(bus, 64, (item) => item.ack());
      await untilAcquired(bus, collected);
      bus.work.dispatch('router.call', 'o1', Buffer.from('blob:none'));

      await eventually(
        async () => bodiesOf(collected.items),
        (all) => all.length > 0,
      );
      expect(bodiesOf(collected.items)).toEqual(['blob:none 1']);
    });
  });
}
