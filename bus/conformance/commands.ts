import { describe, expect, it } from 'vitest';
import type { Bus, LogPosition, StoredCommand } from '../bus.ts';
import { fingerprintOf } from '../position-fingerprint.ts';
import { Collector, eventually, gate, START, type UnderTest } from './under-test.ts';

function collect(bus: Bus, partition: number, after: LogPosition = START): Collector<StoredCommand> {
  const collected = new Collector<StoredCommand>();
  bus.commands.read(partition, after, async (commands) => commands.forEach(collected.add));
  return collected;
}

function bodiesOf(commands: StoredCommand[]): string[] {
  return commands.map(({ body }) => body);
}

async function appendAll(bus: Bus, partition: number, bodies: string[]): Promise<number[]> {
  const sequences: number[] = [];
  for (const body of bodies) sequences.push((await bus.commands.append(partition, `id-${body}`, body)).sequence);
  return sequences;
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, nth) => `${prefix}${nth}`);
}

/** The command log: append, dedupe, read, purge. */
export function commandCases(underTest: UnderTest): void {
  describe('command log: append and look up', () => {
    it('DESIGN 4: a repeated message id is stored once, and answered with the sequence of the first', async () => {
      const { bus } = underTest();
      const first = await bus.commands.append(3, 'm1', 'one');
      const repeat = await bus.commands.append(3, 'm1', 'one again');
      await bus.commands.append(3, 'm2', 'two');

      expect(first.duplicate).toBe(false);
      expect(repeat).toMatchObject({ sequence: first.sequence, duplicate: true });
      expect(bodiesOf(await collect(bus, 3).atLeast(2))).toEqual(['one', 'two']);
    });

    it('stores one of many concurrent appends of the same message id', async () => {
      const { bus } = underTest();
      const answers = await Promise.all(numbered('x', 20).map((body) => bus.commands.append(3, 'm1', body)));

      expect(new Set(answers.map(({ sequence }) => sequence)).size).toBe(1);
      expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    });

    it('refuses a partition that does not exist', async () => {
      const { bus } = underTest();
      await expect(bus.commands.append(64, 'm1', 'x')).rejects.toMatchObject({ code: 'bus.invalid_subject' });
      await expect(bus.commands.append(-1, 'm1', 'x')).rejects.toMatchObject({ code: 'bus.invalid_subject' });
    });

    it('finds the command at a sequence of the log, of any partition', async () => {
      const { bus } = underTest();
      const one = await bus.commands.append(3, 'm1', 'one');
      const two = await bus.commands.append(63, 'm2', 'two');

      expect(await bus.commands.at(one.sequence)).toMatchObject({ sequence: one.sequence, messageId: 'm1', body: 'one' });
      expect(await bus.commands.at(two.sequence)).toMatchObject({ sequence: two.sequence, messageId: 'm2', body: 'two' });
      expect(await bus.commands.at(two.sequence + 1)).toBeNull();
    });

    it('returns the newest command of each partition, and none once it is purged', async () => {
      const { bus } = underTest();
      expect(await bus.commands.lastOf(3)).toBe(0);
      await bus.commands.append(3, 'm1', 'one');
      const { sequence } = await bus.commands.append(3, 'm2', 'two');
      const other = await bus.commands.append(4, 'm3', 'three');

      expect(await bus.commands.lastOf(3)).toBe(sequence);
      expect(await bus.commands.lastOf(4)).toBe(other.sequence);
      await bus.commands.purge(other.sequence);
      expect(await bus.commands.lastOf(3)).toBe(0);
      expect(await bus.commands.lastOf(4)).toBe(other.sequence);
    });

    it('assigns sequences over all partitions and reports the end of the log', async () => {
      const { bus } = underTest();
      const sequences = [
        (await bus.commands.append(1, 'm1', 'a')).sequence,
        (await bus.commands.append(2, 'm2', 'b')).sequence,
        (await bus.commands.append(1, 'm3', 'c')).sequence,
      ];

      expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
      expect(await bus.commands.state()).toMatchObject({ firstSequence: sequences[0], lastSequence: sequences[2] });
    });
  });

  describe('command log: read', () => {
    it('delivers each of 1,000 concurrent appends to its partition, once, in the order of sequences', async () => {
      const { bus } = underTest();
      const partitions = [0, 7, 63];
      const before = partitions.map((partition) => collect(bus, partition));
      const answers = await Promise.all(numbered('', 1_000).map((id, nth) => bus.commands.append(partitions[nth % 3] ?? 0, `id-${id}`, id)));

      for (const [nth, partition] of partitions.entries()) {
        const sent = answers.map(({ sequence }, index) => ({ sequence, body: String(index) })).filter((_, index) => index % 3 === nth);
        const inOrder = sent.sort((a, b) => a.sequence - b.sequence).map(({ body }) => body);
        expect(bodiesOf((await before[nth]?.atLeast(sent.length)) ?? [])).toEqual(inOrder);
        expect(bodiesOf(await collect(bus, partition).atLeast(sent.length))).toEqual(inOrder);
      }
    });

    it('DESIGN 4: a reader begins behind its cursor, and then follows', async () => {
      const { bus } = underTest();
      const [, second = 0] = await appendAll(bus, 5, ['a', 'b', 'c']);
      const read = collect(bus, 5, { sequence: second, fingerprint: 'id-b' });
      await read.atLeast(1);
      await appendAll(bus, 5, ['d']);

      expect(bodiesOf(await read.atLeast(2))).toEqual(['c', 'd']);
    });

    it('follows a partition whose cursor stands at the end of the whole log, past its own last command', async () => {
      const { bus } = underTest();
      await appendAll(bus, 5, ['a']);
      const [end = 0] = await appendAll(bus, 6, ['elsewhere']);
      const read = collect(bus, 5, { sequence: end, fingerprint: 'id-elsewhere' });
      await appendAll(bus, 5, ['b']);

      expect(bodiesOf(await read.atLeast(1))).toEqual(['b']);
    });

    it('delivers each command once and in order when it starts during appends', async () => {
      const { bus } = underTest();
      const bodies = numbered('', 600);
      const readers: Collector<StoredCommand>[] = [];
      const appended: Promise<unknown>[] = [];
      for (const [nth, body] of bodies.entries()) {
        appended.push(bus.commands.append(9, `id-${body}`, body));
        if (nth % 60 === 30) readers.push(collect(bus, 9));
        if (nth % 20 === 0) await appended.at(-1);
      }
      await Promise.all(appended);

      const whole = await collect(bus, 9).atLeast(bodies.length);
      expect(new Set(bodiesOf(whole)).size).toBe(bodies.length);
      for (const reader of readers) expect(await reader.atLeast(bodies.length)).toEqual(whole);
    });

    it('loses nothing of what is appended while a handler is busy', async () => {
      const { bus } = underTest();
      const bodies = numbered('', 3_000);
      const collected = new Collector<StoredCommand>();
      const busy = gate();
      const begun = gate();
      bus.commands.read(9, START, async (commands) => {
        begun.open();
        await busy.opened;
        commands.forEach(collected.add);
      });
      await appendAll(bus, 9, ['first']);
      await begun.opened;
      const answers = await Promise.all(bodies.map((body) => bus.commands.append(9, `id-${body}`, body)));
      busy.open();
      const [later] = await appendAll(bus, 9, ['last']);

      const sequences = (await collected.atLeast(bodies.length + 2)).map(({ sequence }) => sequence);
      expect(sequences.slice(1)).toEqual([...answers.map(({ sequence }) => sequence), later].sort((a = 0, b = 0) => a - b));
    });

    it("waits for the handler's promise before it delivers more", async () => {
      const { bus } = underTest();
      const seen: string[] = [];
      const collected = new Collector<string>();
      let running = 0;
      bus.commands.read(2, START, async (commands) => {
        running += 1;
        seen.push(`${running} running`);
        await bus.commands.state();
        running -= 1;
        for (const { body } of commands) collected.add(body);
      });
      await Promise.all(numbered('', 100).map((body) => bus.commands.append(2, `id-${body}`, body)));
      await collected.atLeast(100);

      expect(new Set(seen)).toEqual(new Set(['1 running']));
    });

    it('delivers at least one and at most maxBatch commands', async () => {
      const { bus } = underTest();
      await appendAll(bus, 2, numbered('early', 10));
      const sizes: number[] = [];
      const collected = new Collector<StoredCommand>();
      const note = async (commands: StoredCommand[]) => {
        sizes.push(commands.length);
        commands.forEach(collected.add);
      };
      bus.commands.read(2, START, note, { maxBatch: 3 });
      await collected.atLeast(10);
      await Promise.all(numbered('late', 10).map((body) => bus.commands.append(2, `id-${body}`, body)));
      await collected.atLeast(20);

      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(1);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(3);
    });

    it('redelivers a batch that a handler rejected, and loses and reorders nothing', async () => {
      const { bus } = underTest();
      const collected = new Collector<StoredCommand>();
      let failures = 2;
      bus.commands.read(2, START, async (commands) => {
        failures -= 1;
        if (failures >= 0) throw new Error('the commit failed');
        commands.forEach(collected.add);
      });
      await Promise.all(numbered('', 50).map((body) => bus.commands.append(2, `id-${body}`, body)));

      const sequences = (await collected.atLeast(50)).map(({ sequence }) => sequence);
      expect(failures).toBeLessThan(0);
      expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
    });

    it('separates partitions', async () => {
      const { bus } = underTest();
      const [odd, even] = [collect(bus, 1), collect(bus, 2)];
      for (const nth of [1, 2, 3, 4]) await bus.commands.append(nth % 2 === 1 ? 1 : 2, `m${nth}`, String(nth));

      expect(bodiesOf(await odd.atLeast(2))).toEqual(['1', '3']);
      expect(bodiesOf(await even.atLeast(2))).toEqual(['2', '4']);
    });

    it('stops after the handler in flight, and delivers nothing more', async () => {
      const { bus } = underTest();
      const collected = new Collector<StoredCommand>();
      const busy = gate();
      const reader = bus.commands.read(2, START, async (commands) => {
        commands.forEach(collected.add);
        await busy.opened;
      });
      await appendAll(bus, 2, ['a']);
      await collected.atLeast(1);
      await appendAll(bus, 2, ['b']);
      let stopped = false;
      const stopping = reader.stop().then(() => {
        stopped = true;
      });
      await collect(bus, 2).atLeast(2);
      expect(stopped).toBe(false);
      busy.open();
      await stopping;
      await appendAll(bus, 2, ['c']);
      await collect(bus, 2).atLeast(3);

      expect(bodiesOf(collected.items)).toEqual(['a']);
    });
  });

  describe('command log: purge', () => {
    it('drops what is below the sequence, over all partitions, and nothing else', async () => {
      const { bus } = underTest();
      const [a, b, c] = [await appendAll(bus, 1, ['a']), await appendAll(bus, 2, ['b']), await appendAll(bus, 1, ['c'])].flat();
      await bus.commands.purge(c ?? 0);

      expect(await bus.commands.at(a ?? 0)).toBeNull();
      expect(await bus.commands.at(b ?? 0)).toBeNull();
      expect(await bus.commands.at(c ?? 0)).toMatchObject({ body: 'c' });
      expect(await bus.commands.state()).toMatchObject({ firstSequence: c, lastSequence: c });
    });

    it('DESIGN 4: a purge at a sequence of 0 or 1 drops nothing', async () => {
      const { bus } = underTest();
      await appendAll(bus, 1, ['a', 'b']);
      await bus.commands.purge(0);
      await bus.commands.purge(1);

      expect(bodiesOf(await collect(bus, 1).atLeast(2))).toEqual(['a', 'b']);
    });

    it('DESIGN 4: a purge with a position drops nothing when another command stands there', async () => {
      const { bus } = underTest();
      const [first = 0, second = 0] = await appendAll(bus, 1, ['a', 'b', 'c']);
      const standing = await bus.commands.at(second);
      if (standing === null) throw new Error('it was just stored');
      await bus.commands.purge(second, { sequence: second, fingerprint: fingerprintOf({ ...standing, messageId: 'another' }) });
      await bus.commands.purge(second, { sequence: second + 1_000, fingerprint: fingerprintOf(standing) });
      expect(await bus.commands.at(first)).toMatchObject({ body: 'a' });

      await bus.commands.purge(second, { sequence: second, fingerprint: fingerprintOf(standing) });
      expect(await bus.commands.at(first)).toBeNull();
      expect(await bus.commands.at(second)).toMatchObject({ body: 'b' });
    });

    it('leaves a reader whose cursor is below it to go on with what is left, and with new commands', async () => {
      const { bus } = underTest();
      const sequences = await appendAll(bus, 1, numbered('', 10));
      await bus.commands.purge(sequences[6] ?? 0);
      const read = collect(bus, 1);
      expect(bodiesOf(await read.atLeast(4))).toEqual(['6', '7', '8', '9']);
      await appendAll(bus, 1, ['new']);

      expect(bodiesOf(await read.atLeast(5)).at(-1)).toBe('new');
    });

    it('leaves a reader to go on after everything unread is purged', async () => {
      const { bus } = underTest();
      const sequences = await appendAll(bus, 1, ['a', 'b', 'c']);
      await bus.commands.purge((sequences[2] ?? 0) + 1);
      const read = collect(bus, 1);
      const [next] = await appendAll(bus, 1, ['new']);

      expect(await read.atLeast(1)).toMatchObject([{ sequence: next, messageId: 'id-new', body: 'new' }]);
      expect(next).toBeGreaterThan(sequences[2] ?? 0);
    });

    it('drops everything at a sequence past the end, and reuses no sequence', async () => {
      const { bus } = underTest();
      const [, last = 0] = await appendAll(bus, 1, ['a', 'b']);
      await bus.commands.purge(last + 1_000);
      expect(await bus.commands.at(last)).toBeNull();
      const [next] = await appendAll(bus, 2, ['c']);

      expect(next).toBeGreaterThan(last);
      expect(bodiesOf(await collect(bus, 2).atLeast(1))).toEqual(['c']);
    });

    it('DESIGN 4: a purge retains the command at the sequence itself, from which a reader can resume', async () => {
      const { bus } = underTest();
      const [, second = 0] = await appendAll(bus, 1, ['a', 'b', 'c']);
      await bus.commands.purge(second);
      const restarts: string[] = [];
      const collected = new Collector<StoredCommand>();
      bus.commands.read(1, { sequence: second, fingerprint: 'id-b' }, async (commands) => commands.forEach(collected.add), {
        onRestart: () => restarts.push('restart'),
      });

      expect(bodiesOf(await collected.atLeast(1))).toEqual(['c']);
      expect(restarts).toEqual([]);
    });

    it('still deduplicates the message id of a command that it dropped', async () => {
      const { bus } = underTest();
      const [sequence] = await appendAll(bus, 1, ['a']);
      await appendAll(bus, 1, ['b']);
      await bus.commands.purge((sequence ?? 0) + 1);

      expect(await bus.commands.append(1, 'id-a', 'a')).toMatchObject({ sequence, duplicate: true });
    });
  });
}

/** The command log after the bus is closed and opened again. */
export function commandReopenCases(underTest: UnderTest): void {
  describe('command log: opened again', () => {
    it('has the same name, commands and message ids', async () => {
      const { bus } = underTest();
      const { created } = await bus.commands.state();
      const [sequence] = await appendAll(bus, 1, ['a']);
      await bus.close();
      const again = await underTest().reopen();

      expect((await again.commands.state()).created).toBe(created);
      expect(await again.commands.append(1, 'id-a', 'a')).toMatchObject({ sequence, duplicate: true });
      await appendAll(again, 1, ['b']);
      expect(bodiesOf(await collect(again, 1).atLeast(2))).toEqual(['a', 'b']);
    });

    it('never assigns a sequence twice, even when everything was purged', async () => {
      const { bus } = underTest();
      const sequences = await appendAll(bus, 1, ['a', 'b', 'c']);
      const last = sequences[2] ?? 0;
      await bus.commands.purge(last + 1);
      expect((await bus.commands.state()).lastSequence).toBe(last);
      await bus.close();
      const again = await underTest().reopen();

      expect((await again.commands.state()).lastSequence).toBe(last);
      const [next] = await appendAll(again, 1, ['d']);
      expect(next).toBeGreaterThan(last);
      expect(bodiesOf(await collect(again, 1, { sequence: last, fingerprint: null }).atLeast(1))).toEqual(['d']);
    });
  });
}

/** The command log of a bus with a short dedupe window. */
export function commandWindowCases(underTest: UnderTest): void {
  describe('command log: later', () => {
    it('DESIGN 4: the log deduplicates a message id for its window, and no longer', async () => {
      const { bus, windows, pass } = underTest();
      const first = await bus.commands.append(1, 'm1', 'a');
      await pass(windows.dedupeMs / 2);
      expect(await bus.commands.append(1, 'm1', 'a')).toMatchObject({ sequence: first.sequence, duplicate: true });
      await pass(windows.dedupeMs);
      const second = await eventually(
        () => bus.commands.append(1, 'm1', 'a'),
        ({ duplicate }) => !duplicate,
      );

      expect(second.sequence).toBeGreaterThan(first.sequence);
    });
  });
}
