import { describe, expect, it } from 'vitest';
import type { Bus, LogPosition } from '../bus.ts';
import { fingerprintOf, hasFingerprint } from '../position-fingerprint.ts';
import { Collector, eventually, START, type UnderTest } from './under-test.ts';

/** Reads partition 1 from after a position. Commands and restarts go into one list. */
function readBehind(bus: Bus, after: LogPosition): Collector<string> {
  const collected = new Collector<string>();
  const collect = async (commands: { body: string }[]) => {
    for (const { body } of commands) collected.add(body);
  };
  bus.commands.read(1, after, collect, { onRestart: () => collected.add('restart') });
  return collected;
}

/** Three commands of partition 1 with one of partition 2 after the second. */
async function someCommands(bus: Bus): Promise<{ first: number; second: number; elsewhere: number; third: number }> {
  const sequences: number[] = [];
  for (const [partition, body] of [
    [1, 'a'],
    [1, 'b'],
    [2, 'elsewhere'],
    [1, 'c'],
  ] as const) {
    sequences.push((await bus.commands.append(partition, `id-${body}`, body)).sequence);
  }
  const [first = 0, second = 0, elsewhere = 0, third = 0] = sequences;
  return { first, second, elsewhere, third };
}

export function positionCases(underTest: UnderTest): void {
  describe('command log: the place of a reader', () => {
    it('DESIGN 4: a place is of another log when another command stands there: reading begins at the first', async () => {
      const { bus } = underTest();
      const { second } = await someCommands(bus);

      expect(await readBehind(bus, { sequence: second, fingerprint: 'of another log' }).atLeast(4)).toEqual(['restart', 'a', 'b', 'c']);
    });

    it('is of another log when its command stands there and was stored at another time, with others below it that were never read', async () => {
      const { bus } = underTest();
      const { second } = await someCommands(bus);
      const command = await bus.commands.at(second);
      if (command === null) throw new Error('it was just stored');
      const storedBefore = { ...command, storedAtMs: command.storedAtMs - 1 };

      expect(await readBehind(bus, { sequence: second, fingerprint: fingerprintOf(storedBefore) }).atLeast(4)).toEqual(['restart', 'a', 'b', 'c']);
      expect(await readBehind(bus, { sequence: second, fingerprint: fingerprintOf(command) }).atLeast(1)).toEqual(['c']);
    });

    it('has one mark, whether its command was read or looked up', async () => {
      const { bus } = underTest();
      const marks: [number, string][] = [];
      bus.commands.read(
        1,
        START,
        async (commands) => void marks.push(...commands.map((command): [number, string] => [command.sequence, fingerprintOf(command)])),
      );
      await someCommands(bus);
      await eventually(
        async () => marks.length,
        (count) => count === 3,
      );

      for (const [sequence, fingerprint] of marks) expect(hasFingerprint(await bus.commands.at(sequence), fingerprint)).toBe(true);
    });

    it('is of another log when the log does not reach so far', async () => {
      const { bus } = underTest();
      const { third } = await someCommands(bus);

      expect(await readBehind(bus, { sequence: third + 1_000, fingerprint: 'id-c' }).atLeast(4)).toEqual(['restart', 'a', 'b', 'c']);
      expect(await readBehind(bus, { sequence: third + 1_000, fingerprint: null }).atLeast(4)).toEqual(['restart', 'a', 'b', 'c']);
    });

    it('DESIGN 4: a place is of another log when its command is gone', async () => {
      const { bus } = underTest();
      const { first, second } = await someCommands(bus);
      await bus.commands.purge(second);

      expect(await readBehind(bus, { sequence: first, fingerprint: 'id-a' }).atLeast(3)).toEqual(['restart', 'b', 'c']);
    });

    it('is of another log when that is empty, and what is appended then is read', async () => {
      const { bus } = underTest();
      const read = readBehind(bus, { sequence: 7, fingerprint: 'of another log' });
      await read.atLeast(1);
      await bus.commands.append(1, 'id-a', 'a');

      expect(await read.atLeast(2)).toEqual(['restart', 'a']);
    });

    it('may be at a command of any partition', async () => {
      const { bus } = underTest();
      const { elsewhere } = await someCommands(bus);

      expect(await readBehind(bus, { sequence: elsewhere, fingerprint: 'id-elsewhere' }).atLeast(1)).toEqual(['c']);
    });

    it('is valid without a fingerprint when the log reaches it', async () => {
      const { bus } = underTest();
      const { first, third } = await someCommands(bus);
      const behindTheLast = readBehind(bus, { sequence: third, fingerprint: null });

      expect(await readBehind(bus, { sequence: first, fingerprint: null }).atLeast(2)).toEqual(['b', 'c']);
      await bus.commands.append(1, 'id-d', 'd');
      expect(await behindTheLast.atLeast(1)).toEqual(['d']);
    });
  });
}
