import { describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '../bus.ts';
import { Collector, gate, START, type UnderTest } from './under-test.ts';

const CLOSED = { code: 'bus.closed' };

/** What a bus accepts and refuses while and after it closes. */
export function closingCases(underTest: UnderTest): void {
  describe('closing', () => {
    it('waits for the handlers in flight, which can still store their results', async () => {
      const { bus } = underTest();
      const begun = new Collector<string>();
      const go = gate();
      const outcomes: string[] = [];
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 60_000 }, async (item) => {
        begun.add('work');
        await go.opened;
        await bus.commands.append(1, 'result', 'result');
        await item.ack();
        outcomes.push('work done');
      });
      bus.commands.read(2, START, async () => {
        begun.add('command');
        await go.opened;
        outcomes.push('command done');
      });
      bus.usage.consume(
        async () => {
          begun.add('usage');
          await go.opened;
          await bus.usage.append('gen-2', 'of a call that ends now');
          outcomes.push('usage done');
        },
        { maxBatch: 1 },
      );
      await bus.work.publish('router.call', 'w1', 'a');
      await bus.commands.append(2, 'm1', 'a');
      await bus.usage.append('gen-1', 'a');
      await begun.atLeast(3);
      const closing = bus.close().then(() => outcomes.push('closed'));
      go.open();
      await closing;

      expect(outcomes.at(-1)).toBe('closed');
      expect(outcomes.slice(0, 3).sort()).toEqual(['command done', 'usage done', 'work done']);
    });

    it('happens once, however often it is called', async () => {
      const { bus } = underTest();
      expect(bus.isReady()).toBe(true);
      await Promise.all([bus.close(), bus.close()]);
      await bus.close();

      expect(bus.isReady()).toBe(false);
    });

    it.each<[string, (bus: Bus) => Promise<unknown>]>([
      ['an append', (bus) => bus.commands.append(1, 'm1', 'a')],
      ['a look at a command', (bus) => bus.commands.at(1)],
      ['a look at the state', (bus) => bus.commands.state()],
      ['a purge', (bus) => bus.commands.purge(5)],
      ['work', (bus) => bus.work.publish('router.call', 'w1', 'a')],
      ['a replay', (bus) => bus.tokens.replay('tok.a.b')],
      ['a new blob', (bus) => bus.blobs.put(Buffer.from('a'))],
      ['a look at a blob', (bus) => bus.blobs.get('a')],
      ['a usage record', (bus) => bus.usage.append('gen-1', 'a')],
      ['a look at the backlog of usage', (bus) => bus.usage.backlog()],
      ['a consumer of usage', async (bus) => bus.usage.consume(async () => {}, { maxBatch: 1 })],
      ['a reader of commands', async (bus) => bus.commands.read(1, START, async () => {})],
      ['a consumer', async (bus) => bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 1_000 }, async () => {})],
      ['a listener to notices', async (bus) => bus.notices.subscribe('a.b', () => {})],
      ['a listener to tokens', async (bus) => bus.tokens.subscribe('a.b', () => {})],
    ])('is followed by a refusal of %s', async (_, call) => {
      const { bus } = underTest();
      await bus.close();

      await expect(call(bus)).rejects.toMatchObject(CLOSED);
    });

    it('is followed by a refusal to settle work', async () => {
      const { bus } = underTest();
      const collected = new Collector<WorkItem>();
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 60_000 }, async (item) => collected.add(item));
      await bus.work.publish('router.call', 'w1', 'a');
      const [item] = await collected.atLeast(1);
      await bus.close();

      await expect(item?.ack()).rejects.toMatchObject(CLOSED);
      await expect(item?.working()).rejects.toMatchObject(CLOSED);
    });

    it('drops notices and tokens silently', async () => {
      const { bus } = underTest();
      const collected = new Collector<string>();
      bus.notices.subscribe('evt.s1', (_, body) => collected.add(body));
      await bus.close();
      bus.notices.publish('evt.s1', 'a');
      bus.tokens.publish('tok.a.b', Buffer.from('a'));

      expect(collected.items).toEqual([]);
    });
  });
}
