import { describe, expect, it } from 'vitest';
import { gate } from '../conformance/under-test.ts';
import { GroupCommit } from './group-commit.ts';

/** A group commit whose statements end when the test says so. */
function heldCommit(sizeOf: (item: string) => number = () => 1) {
  const batches: string[][] = [];
  const gates: ReturnType<typeof gate>[] = [];
  const commit = new GroupCommit<string>({
    sizeOf,
    flush: async (items) => {
      batches.push(items);
      const statement = gate();
      gates.push(statement);
      await statement.opened;
      if (items.includes('bad')) throw new Error('refused');
    },
  });
  return { commit, batches, gates };
}

describe('GroupCommit', () => {
  it('fails every item of a batch that fails, and none of the next', async () => {
    const { commit, gates, batches } = heldCommit();
    const first = Promise.allSettled([commit.add('good'), commit.add('bad')]);
    await Promise.resolve();
    const second = commit.add('next');
    gates[0]?.open();
    expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    gates[1]?.open();
    await second;

    expect(batches).toEqual([['good', 'bad'], ['next']]);
  });

  it('collects what is added while a statement is in flight, and is idle when all is written', async () => {
    const { commit, gates, batches } = heldCommit();
    void commit.add('a');
    await Promise.resolve();
    void commit.add('b');
    void commit.add('c');
    expect(batches).toEqual([['a']]);
    let idle = false;
    const waiting = commit.idle().then(() => {
      idle = true;
    });
    gates[0]?.open();
    await new Promise(setImmediate);
    expect(batches).toEqual([['a'], ['b', 'c']]);
    expect(idle).toBe(false);
    gates[1]?.open();
    await waiting;

    expect(idle).toBe(true);
  });

  it('limits a statement in rows and in bytes, and writes an item that is too large by itself', async () => {
    const { commit, gates, batches } = heldCommit((item) => (item.startsWith('large') ? 3 * 1024 * 1024 : item === 'huge' ? 9 * 1024 * 1024 : 1));
    const items = ['large1', 'large2', 'huge', ...Array.from({ length: 513 }, () => 'x')];
    const all = Promise.all(items.map((item) => commit.add(item)));
    for (let statement = 0; statement < 5; statement += 1) {
      await new Promise(setImmediate);
      gates[statement]?.open();
    }
    await all;

    expect(batches.map((batch) => batch.length)).toEqual([1, 1, 1, 512, 1]);
  });

  it('has no capacity for more when too much waits', async () => {
    const { commit, gates } = heldCommit(() => 64 * 1024 * 1024);
    const added = [commit.add('in flight')];
    await Promise.resolve();
    commit.assertCapacity();
    added.push(commit.add('waiting'));
    expect(() => commit.assertCapacity()).toThrow(expect.objectContaining({ code: 'bus.full' }));
    gates[0]?.open();
    await added[0];
    gates[1]?.open();
    await added[1];

    commit.assertCapacity();
  });
});
