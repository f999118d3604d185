import { describe, expect, it } from 'vitest';
import type { Bus, Subscription, UsageMessage } from '../bus.ts';
import { MAX_USAGE_BYTES } from '../usage-limits.ts';
import { Collector, eventually, gate, type UnderTest } from './under-test.ts';

const MAX_BATCH = 100;

/** Accepts all records. */
function consumeAll(bus: Bus, maxBatch = MAX_BATCH): Collector<UsageMessage> & { consuming: Subscription } {
  const collected = new Collector<UsageMessage>();
  const consuming = bus.usage.consume(async (records) => records.forEach(collected.add), { maxBatch });
  return Object.assign(collected, { consuming });
}

async function appendAll(bus: Bus, ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map((id) => bus.usage.append(id, `body of ${id}`)));
}

function idsOf(records: readonly UsageMessage[]): string[] {
  return records.map(({ messageId }) => messageId).sort();
}

async function isEmptied(bus: Bus): Promise<void> {
  await eventually(
    () => bus.usage.backlog(),
    ({ records }) => records === 0,
  );
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `gen-${String(index).padStart(4, '0')}`);

export function usageCases(underTest: UnderTest): void {
  describe('usage', () => {
    it('delivers records that were stored before and after the consumer began, with message id and body', async () => {
      const { bus } = underTest();
      await bus.usage.append('before', 'one');
      const collected = consumeAll(bus);
      await collected.atLeast(1);
      await bus.usage.append('after', 'two');

      expect(await collected.atLeast(2)).toEqual([
        { messageId: 'before', body: 'one' },
        { messageId: 'after', body: 'two' },
      ]);
    });

    it('keeps every character of ids and bodies', async () => {
      const { bus } = underTest();
      const odd = 'a\u0000b\u0001c "\\ é 😀\n';
      await bus.usage.append('id: ü\n1', odd);

      expect(await consumeAll(bus).atLeast(1)).toEqual([{ messageId: 'id: ü\n1', body: odd }]);
    });

    it('stores a repeated message id once', async () => {
      const { bus } = underTest();
      await bus.usage.append('gen-1', 'one');
      await Promise.all([bus.usage.append('gen-1', 'one'), bus.usage.append('gen-1', 'one')]);

      expect((await bus.usage.backlog()).records).toBe(1);
    });

    it('leaves what comes in the pause of a consumer to others, and ends with the consumer', async () => {
      const { bus } = underTest();
      const paced = new Collector<UsageMessage>();
      const consuming = bus.usage.consume(async (records) => records.forEach(paced.add), { maxBatch: MAX_BATCH, everyMs: 600_000 });
      const appended = ['gen-0'];
      await bus.usage.append('gen-0', 'body');
      await paced.atLeast(1);
      const other = consumeAll(bus);
      // A busy broker may serve a request of before the pause for some milliseconds. Two consumers that both ask are served in turn.
      for (let inARow = 0; inARow < 10; ) {
        const before = other.items.length;
        appended.push(`gen-${appended.length}`);
        await bus.usage.append(appended.at(-1) ?? '', 'body');
        await isEmptied(bus);
        inARow = other.items.length > before ? inARow + 1 : 0;
      }
      await consuming.stop();

      expect(idsOf([...paced.items, ...other.items])).toEqual(appended.sort());
    });

    it('delivers what arrives while the handler runs together, up to the limit of a batch', async () => {
      const { bus } = underTest();
      const batches = new Collector<string[]>();
      const go = gate();
      bus.usage.consume(
        async (records) => {
          batches.add(idsOf(records));
          await go.opened;
        },
        { maxBatch: 8 },
      );
      await bus.usage.append('first', 'body');
      await batches.atLeast(1);
      const ids = numbered(40);
      await appendAll(bus, ids);
      go.open();
      await isEmptied(bus);

      expect(batches.items.flat().sort()).toEqual(['first', ...ids].sort());
      expect(Math.max(...batches.items.map(({ length }) => length))).toBe(8);
    });

    it('delivers a rejected batch again, after a back-off, and what was accepted not again', async () => {
      const { bus } = underTest();
      const ids = numbered(30);
      await appendAll(bus, ids);
      const accepted: string[] = [];
      const rejectedAt: number[] = [];
      bus.usage.consume(
        async (records) => {
          if (rejectedAt.length < 3) {
            rejectedAt.push(performance.now());
            throw new Error('the database is away');
          }
          accepted.push(...idsOf(records));
        },
        { maxBatch: 10 },
      );
      await isEmptied(bus);

      expect(accepted.sort()).toEqual(ids);
      const [first = 0, , third = 0] = rejectedAt;
      // 50 ms and 100 ms; timers may fire a little early.
      expect(third - first).toBeGreaterThan(140);
    });

    it('delivers a record to one of several consumers, and to others what that one has rejected', async () => {
      const { bus, another } = underTest();
      const other = await another();
      const first = new Collector<string>();
      const go = gate();
      bus.usage.consume(
        async (records) => {
          for (const { messageId } of records) first.add(messageId);
          await go.opened;
          throw new Error('this one can not');
        },
        { maxBatch: 5 },
      );
      await bus.usage.append('rejected', 'body');
      await first.atLeast(1);
      const accepting = consumeAll(other, 5);
      for (const messageId of numbered(20)) await bus.usage.append(messageId, 'body');
      const held = new Set(first.items);
      await accepting.atLeast(1);
      expect(idsOf(accepting.items).filter((id) => held.has(id))).toEqual([]);
      go.open();
      await isEmptied(bus);

      expect(idsOf(accepting.items)).toEqual([...new Set(idsOf(accepting.items))]);
      expect(new Set(idsOf(accepting.items))).toEqual(new Set(['rejected', ...numbered(20)]));
    });

    it('delivers to an idle consumer what another rejects', async () => {
      const { bus, another } = underTest();
      const other = await another();
      const reject = async () => {
        // By then the other has looked too, and found nothing.
        await bus.usage.backlog();
        throw new Error('this one can not');
      };
      bus.usage.consume(reject, { maxBatch: 1 });
      const accepted = consumeAll(other, 1);
      await bus.usage.append('gen-1', 'body');

      expect(idsOf(await accepted.atLeast(1))).toEqual(['gen-1']);
    });

    it('shares records between consumers, and delivers those that one rejects to another', async () => {
      const { bus, another } = underTest();
      const other = await another();
      const rejected = new Collector<string>();
      bus.usage.consume(
        async (records) => {
          for (const { messageId } of records) rejected.add(messageId);
          throw new Error('this one can not');
        },
        { maxBatch: 2 },
      );
      await appendAll(bus, numbered(10));
      await rejected.atLeast(2);
      const accepted = consumeAll(other, 2);
      await isEmptied(bus);

      expect(new Set(idsOf(accepted.items))).toEqual(new Set(numbered(10)));
    });

    it('counts what is not accepted, in flight or not, and knows since when the oldest waits', async () => {
      const { bus } = underTest();
      expect(await bus.usage.backlog()).toEqual({ records: 0, oldestAtMs: null });
      const begun = gate();
      const done = gate();
      await bus.usage.append('gen-1', 'one');
      const { oldestAtMs } = await bus.usage.backlog();
      bus.usage.consume(
        async () => {
          begun.open();
          await done.opened;
        },
        { maxBatch: 1 },
      );
      await begun.opened;
      await bus.usage.append('gen-2', 'two');

      expect(oldestAtMs).toBeGreaterThan(Date.parse('2026-01-01T00:00:00Z') - 1);
      expect(await bus.usage.backlog()).toEqual({ records: 2, oldestAtMs });
      done.open();
      await isEmptied(bus);
      expect(await bus.usage.backlog()).toEqual({ records: 0, oldestAtMs: null });
    });

    it('waits at a stop for the running handler, whose records are removed, and leaves the rest to others', async () => {
      const { bus } = underTest();
      const begun = gate();
      const done = gate();
      const outcomes: string[] = [];
      const consuming = bus.usage.consume(
        async (records) => {
          begun.open();
          await done.opened;
          outcomes.push(...idsOf(records), 'handled');
        },
        { maxBatch: 1 },
      );
      await bus.usage.append('gen-1', 'one');
      await begun.opened;
      await bus.usage.append('gen-2', 'two');
      const stopped = consuming.stop().then(() => outcomes.push('stopped'));
      done.open();
      await stopped;
      expect(outcomes).toEqual(['gen-1', 'handled', 'stopped']);

      expect(idsOf(await consumeAll(bus).atLeast(1))).toEqual(['gen-2']);
      await isEmptied(bus);
    });

    it('refuses a record that is too large', async () => {
      const { bus } = underTest();
      await bus.usage.append('largest', 'x'.repeat(MAX_USAGE_BYTES));

      await expect(bus.usage.append('larger', 'é'.repeat(MAX_USAGE_BYTES / 2 + 1))).rejects.toMatchObject({ code: 'bus.body_too_large' });
      expect((await consumeAll(bus).atLeast(1)).map(({ body }) => body.length)).toEqual([MAX_USAGE_BYTES]);
    });
  });
}

export function usageReopenCases(underTest: UnderTest): void {
  describe('usage: opened again', () => {
    it('has the records that were not accepted, and not the others, and still deduplicates', async () => {
      const { bus } = underTest();
      const collected = consumeAll(bus);
      await bus.usage.append('done', 'body');
      await collected.atLeast(1);
      await isEmptied(bus);
      await collected.consuming.stop();
      await bus.usage.append('left', 'body');
      await bus.close();
      const again = await underTest().reopen();
      await again.usage.append('left', 'body');
      expect((await again.usage.backlog()).records).toBe(1);
      const rest = consumeAll(again);
      await isEmptied(again);

      expect(idsOf(rest.items)).toEqual(['left']);
    });
  });
}

export function usageWindowCases(underTest: UnderTest): void {
  describe('usage: later', () => {
    it('DESIGN 6: records in flight at a killed consumer are delivered to another', async () => {
      const { bus } = underTest();
      const begun = gate();
      const never = gate();
      bus.usage.consume(
        async () => {
          begun.open();
          await never.opened;
        },
        { maxBatch: 2 },
      );
      await appendAll(bus, numbered(5));
      await begun.opened;
      const successor = await underTest().reopen();
      const collected = consumeAll(successor);
      await eventually(
        async () => new Set(idsOf(collected.items)).size,
        (count) => count === 5,
      );
      never.open();
    });

    it('stores a message id again once the window is over, and not before', async () => {
      const { bus, windows, pass } = underTest();
      await bus.usage.append('gen-1', 'one');
      await pass(windows.dedupeMs / 2);
      await bus.usage.append('gen-1', 'one');
      expect((await bus.usage.backlog()).records).toBe(1);
      await pass(windows.dedupeMs);
      await eventually(
        async () => {
          await bus.usage.append('gen-1', 'one');
          return (await bus.usage.backlog()).records;
        },
        (records) => records > 1,
      );
    });
  });
}
