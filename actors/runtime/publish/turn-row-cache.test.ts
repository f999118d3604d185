import { beforeEach, describe, expect, it } from 'vitest';
import { commandRows } from '../../test-support/command-rows.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { TurnRowCache } from './turn-row-cache.ts';

/** The store's rows, and the turns that were read from it. */
let stored: { turnId: string; seq: number; body: object }[];
let reads: string[][];
let cache: TurnRowCache;

beforeEach(() => {
  stored = [];
  reads = [];
  cache = new TurnRowCache({
    staged: async (turnIds) => {
      reads.push([...turnIds]);
      const rowsOf = (turnId: string) => stored.flatMap((row) => (row.turnId === turnId ? [{ seq: row.seq, body: row.body }] : []));
      return new Map(turnIds.map((turnId) => [turnId, rowsOf(turnId)]));
    },
  });
});

/** Stores the next row of a turn by a commit. */
function commit(turnId: string, { owned = [7], text = '' }: { owned?: number[]; text?: string } = {}): void {
  const seq = stored.filter((row) => row.turnId === turnId).length;
  const body = { kind: 'began', seq, text };
  const plan = new CommitPlan();
  plan.merge(commandRows({ turnSteps: [{ partition: 7, sessionId: `ses_${turnId}`, turnId, seq, offset: seq, body }] }));
  if (owned.includes(7)) stored.push({ turnId, seq, body });
  cache.release(plan, new Set(owned));
}

const seqsOf = async (turnId: string) => ((await cache.staged([turnId])).get(turnId) ?? []).map(({ seq }) => seq);

describe('the staged rows of a turn', () => {
  it('are not read when this host has stored them from the first on', async () => {
    commit('a');
    commit('b');
    commit('a');

    expect(await seqsOf('a')).toEqual([0, 1]);
    expect(await seqsOf('b')).toEqual([0]);
    expect(reads).toEqual([]);
  });

  it('are read when another host has stored the first ones, and those of other turns are not', async () => {
    stored = [{ turnId: 'a', seq: 0, body: {} }];
    commit('a');
    commit('b');

    const found = await cache.staged(['a', 'b']);
    expect([...found].map(([turnId, rows]) => [turnId, rows.length])).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
    expect(reads).toEqual([['a']]);
  });

  it('do not have one whose commit was fenced', async () => {
    commit('a');
    commit('a', { owned: [] });
    expect(await seqsOf('a')).toEqual([0]);
  });

  it('are read again once another host may have had the partition', async () => {
    commit('a');
    cache.forget(7);
    stored.push({ turnId: 'a', seq: 1, body: {} });
    expect(await seqsOf('a')).toEqual([0, 1]);
    commit('a');
    expect(await seqsOf('a')).toEqual([0, 1, 2]);
    expect(reads).toEqual([['a'], ['a']]);
  });

  it.each(['events', 'session'])('have none that went with its %s', async (deleted) => {
    commit('a');
    commit('b');
    stored = stored.filter(({ turnId }) => turnId !== 'a');
    const plan = new CommitPlan();
    const sessionId = 'ses_a';
    if (deleted === 'session') plan.deletedSessions.set(sessionId, 7);
    else plan.merge(commandRows({ sessionId, deletedEvents: [{ partition: 7, sessionId, fromOffset: 0, toOffset: 2, atMs: 0 }] }));
    cache.release(plan, new Set([7]));

    expect(await seqsOf('a')).toEqual([]);
    expect(await seqsOf('b')).toEqual([0]);
    expect(reads).toEqual([['a']]);
  });

  it('are read when they are large, as with results of tools', async () => {
    commit('a');
    commit('a', { text: 'x'.repeat(300_000) });
    commit('a');
    expect(await seqsOf('a')).toEqual([0, 1, 2]);
    expect(reads).toEqual([['a']]);
  });
});
