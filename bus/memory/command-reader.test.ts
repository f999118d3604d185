import { afterEach, describe, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { StoredCommand } from '../bus.ts';
import { Collector, gate, START } from '../conformance/under-test.ts';
import { CommandReader } from './command-reader.ts';

function command(sequence: number): StoredCommand {
  return { sequence, messageId: `m${sequence}`, body: `body ${sequence}`, storedAtMs: sequence };
}

function turn(): Promise<void> {
  return new Promise(setImmediate);
}

/** A partition with commits and pages under the test's control. */
function partition() {
  const table: StoredCommand[] = [];
  const pages = new Collector<{ after: number; answer(): void }>();
  const collected = new Collector<number>();
  const restarts: string[] = [];
  let held = true;
  let last = 0;
  const readers: CommandReader[] = [];
  const announce = (sequence: number) => {
    const previous = last;
    last = sequence;
    for (const reader of readers) reader.deliver(command(sequence), previous);
  };
  return {
    pages,
    collected,
    /** Stores commands in the table; `announce` delivers them to the reader, possibly later. */
    store: (...sequences: number[]) => table.push(...sequences.map(command)),
    announce,
    commit: (...sequences: number[]) => {
      table.push(...sequences.map(command));
      for (const sequence of sequences) announce(sequence);
    },
    purge: () => table.splice(0),
    /** Calls of `onRestart`. */
    restarts,
    /** Sets whether the reader's position is of this log. */
    setHeld: (hasLease: boolean) => {
      held = hasLease;
    },
    read: (handler: (commands: StoredCommand[]) => Promise<void> = async () => {}, after = START) => {
      const reader = new CommandReader({
        partition: 1,
        after,
        onRestart: () => restarts.push('restart'),
        contains: async () => held,
        maxBatch: 128,
        handler: async (commands) => {
          await handler(commands);
          for (const { sequence } of commands) collected.add(sequence);
        },
        lastOfPartition: () => last,
        readPage: async (after, limit) => {
          const page = gate();
          let rows: StoredCommand[] = [];
          pages.add({
            after,
            answer: () => {
              rows = table.filter(({ sequence }) => sequence > after).slice(0, limit);
              page.open();
            },
          });
          await page.opened;
          return rows;
        },
        log: silentLog,
      });
      readers.push(reader);
      return reader;
    },
  };
}

describe('CommandReader', () => {
  const readers: CommandReader[] = [];
  afterEach(async () => {
    for (const reader of readers.splice(0)) await reader.stop();
  });

  it('delivers once what a page contained before its commit was announced', async () => {
    const { commit, store, announce, read, pages, collected } = partition();
    commit(1);
    readers.push(read());
    store(2);
    (await pages.atLeast(1))[0]?.answer();
    await collected.atLeast(2);
    announce(2);
    commit(3);

    expect(await collected.atLeast(3)).toEqual([1, 2, 3]);
    expect(pages.items).toHaveLength(1);
  });

  it('fetches what was committed while a page was read, though it was not announced', async () => {
    const { commit, store, announce, read, pages, collected } = partition();
    commit(1);
    readers.push(read());
    const [first] = await pages.atLeast(1);
    first?.answer();
    store(2);
    announce(2);
    (await pages.atLeast(2))[1]?.answer();
    await collected.atLeast(2);
    commit(3);

    expect(await collected.atLeast(3)).toEqual([1, 2, 3]);
    expect(pages.items.map(({ after }) => after)).toEqual([0, 1]);
  });

  it('reads the table once and no more when everything behind its position is purged', async () => {
    const { commit, purge, read, pages, collected } = partition();
    commit(1, 2, 3);
    purge();
    readers.push(read());
    (await pages.atLeast(1))[0]?.answer();
    await turn();
    commit(4);

    expect(await collected.atLeast(1)).toEqual([4]);
    expect(pages.items).toHaveLength(1);
  });

  it('never reads the table for announced commands, one by one and many at once', async () => {
    const { commit, read, pages, collected } = partition();
    readers.push(read());
    commit(1);
    await collected.atLeast(1);
    commit(...Array.from({ length: 300 }, (_, position) => position + 2));

    expect(await collected.atLeast(301)).toEqual(Array.from({ length: 301 }, (_, position) => position + 1));
    expect(pages.items).toHaveLength(0);
  });

  it('reads the table again for what exceeded its buffer', async () => {
    const { commit, read, pages, collected } = partition();
    const busy = gate();
    readers.push(read(() => busy.opened));
    commit(1);
    await turn();
    commit(...Array.from({ length: 1_100 }, (_, position) => position + 2));
    busy.open();
    (await pages.atLeast(1))[0]?.answer();

    expect(await collected.atLeast(1_101)).toEqual(Array.from({ length: 1_101 }, (_, position) => position + 1));
    expect(pages.items.map(({ after }) => after)).toEqual([1_025]);
  });

  it('begins at the first command when its position is of another log, and reports it once', async () => {
    const { commit, read, pages, collected, restarts, setHeld } = partition();
    setHeld(false);
    commit(1, 2);
    readers.push(read(async () => {}, { sequence: 900, fingerprint: 'm900' }));
    commit(3);
    (await pages.atLeast(1))[0]?.answer();

    expect(await collected.atLeast(3)).toEqual([1, 2, 3]);
    expect(pages.items.map(({ after }) => after)).toEqual([0]);
    expect(restarts).toEqual(['restart']);
  });

  it('stops in any microtask before it waits', async () => {
    const stopped: string[] = [];
    for (let microtasks = 0; microtasks < 20; microtasks += 1) {
      const reader = partition().read();
      for (let passed = 0; passed < microtasks; passed += 1) await Promise.resolve();
      const ended = reader.stop().then(() => 'stopped');
      stopped.push(await Promise.race([ended, turn().then(() => `waits after ${microtasks} microtasks`)]));
    }
    expect(stopped).toEqual(Array.from({ length: 20 }, () => 'stopped'));
  });

  it('stops during the back-off after a failure', async () => {
    const { commit, read } = partition();
    const failed = gate();
    const reader = read(async () => {
      failed.open();
      throw new Error('never');
    });
    commit(1);
    await failed.opened;

    await reader.stop();
  });
});
