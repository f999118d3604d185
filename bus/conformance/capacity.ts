import { describe, expect, it } from 'vitest';
import type { Bus } from '../bus.ts';
import { eventually, type UnderTest } from './under-test.ts';

const FULL = { code: 'bus.full' };
/** Nine of these fill nine tenths. */
const SHARE = 0.1;

/** Stores bodies of a tenth of the capacity. */
async function store(count: number, from: number, one: (messageId: string) => Promise<unknown>): Promise<void> {
  for (let index = from; index < from + count; index += 1) await one(`m${index}`);
}

async function hasCapacity(bus: Bus, expected: boolean): Promise<void> {
  await eventually(
    async () => bus.hasCapacity(),
    (found) => found === expected,
  );
}

export function capacityCases(underTest: UnderTest): void {
  describe('capacity', () => {
    it('DESIGN 4: there is capacity until the command log is four fifths full; a full one refuses, and a purge frees it again', async () => {
      const { bus, capacityBytes } = underTest();
      const body = 'x'.repeat(Math.floor(SHARE * capacityBytes));
      const append = (messageId: string) => bus.commands.append(1, messageId, body);
      await store(6, 0, append);
      await hasCapacity(bus, true);
      await store(3, 6, append);
      await hasCapacity(bus, false);
      await expect(store(4, 9, append)).rejects.toMatchObject(FULL);

      await bus.commands.purge((await bus.commands.state()).lastSequence + 1);
      await hasCapacity(bus, true);
      expect(await append('after')).toMatchObject({ duplicate: false });
    });

    it('DESIGN 6 rule 6: there is capacity until the work queue is four fifths full; a full one refuses, and finished work frees it again', async () => {
      const { bus, capacityBytes } = underTest();
      const body = 'x'.repeat(Math.floor(SHARE * capacityBytes));
      const publish = (messageId: string) => bus.work.publish('tool', messageId, body);
      await store(6, 0, publish);
      await hasCapacity(bus, true);
      await store(3, 6, publish);
      await hasCapacity(bus, false);
      await expect(store(4, 9, publish)).rejects.toMatchObject(FULL);

      bus.work.consume('tool', { concurrency: 4, ackWaitMs: 60_000 }, (item) => item.ack());
      await hasCapacity(bus, true);
      expect(await publish('after')).toEqual({ duplicate: false });
    });

    it('DESIGN 6: there is capacity until the usage log is four fifths full; a full one refuses, and accepted records free it again', async () => {
      const { bus, capacityBytes } = underTest();
      const body = 'x'.repeat(Math.floor(SHARE * capacityBytes));
      const append = (messageId: string) => bus.usage.append(messageId, body);
      await store(6, 0, append);
      await hasCapacity(bus, true);
      await store(3, 6, append);
      await hasCapacity(bus, false);
      await expect(store(4, 9, append)).rejects.toMatchObject(FULL);

      bus.usage.consume(async () => {}, { maxBatch: 4 });
      await hasCapacity(bus, true);
      await append('after');
    });

    it('DESIGN 13: there is no capacity for more work of a kind while waiting items are not consumed, and other kinds are not affected', async () => {
      const { bus } = underTest();
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const consumer = bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 60_000 }, async (item) => {
        await held;
        await item.ack();
      });
      const ask = (expected: boolean) =>
        eventually(
          async () => bus.hasCapacity('router.call'),
          (found) => found === expected,
        );
      await ask(true);
      await Promise.all(Array.from({ length: 100 }, (_, index) => bus.work.publish('router.call', `call${index}`, 'body')));
      await ask(false);
      expect(bus.hasCapacity()).toBe(true);
      expect(bus.hasCapacity('router.turn')).toBe(true);

      release();
      await ask(true);
      await consumer.stop();
    });
  });
}
