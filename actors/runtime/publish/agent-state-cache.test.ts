import { beforeEach, describe, expect, it } from 'vitest';
import { partitionOf } from '#bus/partition.ts';
import { commandRows } from '../../test-support/command-rows.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { AgentStateCache } from './agent-state-cache.ts';

const sessionId = 'ses_a';
const partition = partitionOf(sessionId);
const owned = new Set([partition]);

/** The store's rows of the session, and how often they were read. */
let stored: { offset: number; state: object }[];
let reads: number;
let duringRead: () => void;
let cache: AgentStateCache;

beforeEach(() => {
  stored = [];
  reads = 0;
  duringRead = () => {};
  cache = new AgentStateCache({
    agentStates: async () => {
      reads += 1;
      const newest = stored.at(-1);
      duringRead();
      return new Map(newest === undefined ? [] : [[sessionId, newest]]);
    },
  });
});

const rowOf = (offset: number, text = '') => ({ partition, sessionId, seq: offset, offset, state: { at: offset, text } });

/** Stores a state by a commit. */
function commit(offset: number, text = ''): void {
  const plan = new CommitPlan();
  plan.merge(commandRows({ agentStates: [rowOf(offset, text)] }));
  stored.push({ offset, state: { at: offset, text } });
  cache.release(plan, owned);
}

const newestOffset = async () => (await cache.agentStates([sessionId])).get(sessionId)?.offset;

describe('the newest agent state of a session', () => {
  it('is read once, also where there is none', async () => {
    expect([await newestOffset(), await newestOffset()]).toEqual([undefined, undefined]);
    expect(reads).toBe(1);
  });

  it('is that of the last commit, which is not read', async () => {
    expect(await newestOffset()).toBeUndefined();
    commit(4);
    commit(9);

    expect(await newestOffset()).toBe(9);
    expect(reads).toBe(1);
  });

  it('is the last of one commit', async () => {
    const plan = new CommitPlan();
    plan.merge(commandRows({ agentStates: [rowOf(4), rowOf(5)] }));
    cache.release(plan, owned);

    expect(await newestOffset()).toBe(5);
  });

  it('is not one whose commit was fenced', async () => {
    commit(4);
    const plan = new CommitPlan();
    plan.merge(commandRows({ agentStates: [rowOf(9)] }));
    cache.release(plan, new Set());

    expect(await newestOffset()).toBe(4);
  });

  it('is read again once another host may have had the partition', async () => {
    commit(4);
    cache.forget(partition);
    stored.push({ offset: 9, state: {} });

    expect(await newestOffset()).toBe(9);
    expect(reads).toBe(1);
  });

  it('is not kept from a read during which the partition was lost', async () => {
    duringRead = () => cache.forget(partition);
    await newestOffset();
    stored.push({ offset: 9, state: {} });

    expect(await newestOffset()).toBe(9);
    expect(reads).toBe(2);
  });

  it.each(['events', 'session'])('is not one that went with its %s', async (deleted) => {
    commit(4);
    commit(9);
    stored.pop();
    const plan = new CommitPlan();
    if (deleted === 'session') plan.deletedSessions.set(sessionId, partition);
    else plan.merge(commandRows({ sessionId, deletedEvents: [{ partition, sessionId, fromOffset: 5, toOffset: 10, atMs: 0 }] }));
    cache.release(plan, owned);

    expect(await newestOffset()).toBe(4);
  });

  it('is read again with what was added to it', async () => {
    commit(4);
    const plan = new CommitPlan();
    plan.merge(commandRows({ agentStates: [{ ...rowOf(2), seq: -3 }] }));
    cache.release(plan, owned);

    expect(await newestOffset()).toBe(4);
    expect(reads).toBe(1);
  });

  it('is read when it is large', async () => {
    commit(4);
    commit(9, 'x'.repeat(70_000));

    expect(await newestOffset()).toBe(9);
    expect(reads).toBe(1);
  });
});
