import { beforeEach, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { Histories } from './histories.ts';

const ours = { sessionId: 'ses_1', partition: 7 };
/** The database's events, and the number of its queries. */
let stored: ConversationEvent[];
let reads: number;
let histories: Histories;

beforeEach(() => {
  stored = [];
  reads = 0;
  const query = async (_statement: unknown, [, offset]: readonly unknown[] = []) => {
    reads += 1;
    const found = stored.filter((event) => event.kind !== 'status' && event.offset <= Number(offset)).reverse();
    return { rows: found.map((body) => ({ body })), rowCount: found.length };
  };
  histories = new Histories({ query } as unknown as Queryable);
});

/** Appends an event by a commit that stored some partitions. */
function commit(text: string | null, { owned = [7], sessionId = 'ses_1' }: { owned?: number[]; sessionId?: string } = {}): void {
  const plan = new CommitPlan();
  const offset = stored.length;
  const about = { id: `evt_${offset}`, offset, created_at: '', source: 'customer' as const, trace_id: '', metadata: {} };
  const event: ConversationEvent =
    text === null ? { ...about, kind: 'status', status: 'ready', stage: null, error_detail: null } : { ...about, kind: 'user_message', text };
  plan.appendEvent(7, sessionId, event);
  if (owned.includes(7)) stored.push(event);
  histories.release(plan, new Set(owned));
}

const said = async (offset: number) => (await histories.upTo(offset, ours)).map((event) => ('text' in event ? event.text : event.kind));

describe('what was said in a session', () => {
  it('is read again when the log went on while it was being read', async () => {
    stored = Array.from({ length: 3 }, (_, offset) => ({ offset, kind: 'user_message', text: `${offset}` }) as ConversationEvent);
    const reading = said(2);
    commit('3');
    await reading;
    commit('4');

    expect(await said(4)).toEqual(['0', '1', '2', '3', '4']);
    expect(reads).toBe(2);
  });

  it('is not what a commit was to bring that another host had fenced out', async () => {
    commit('a');
    commit('lost', { owned: [8] });

    expect(await said(0)).toEqual(['a']);
    commit('b');
    expect(await said(1)).toEqual(['a', 'b']);
  });

  it('is forgotten with its partition, and with the session', async () => {
    commit('a');
    histories.forget(7);
    stored = [];
    expect(await said(0)).toEqual([]);

    commit('b');
    const deletion = new CommitPlan();
    deletion.deleteSession(7, 'ses_1');
    histories.release(deletion, new Set([7]));
    stored = [];
    expect(await said(0)).toEqual([]);
    expect(reads).toBe(2);
  });

  it('is not kept when it has become long', async () => {
    commit('a');
    commit('x'.repeat(20_000));
    expect(await said(1)).toHaveLength(2);
    expect(await said(1)).toHaveLength(2);

    expect(reads).toBe(2);
  });

  it('is read of no more than ten thousand sessions from memory, those that spoke last', async () => {
    commit('a');
    for (let n = 2; n <= 10_001; n += 1) {
      stored = [];
      commit('b', { sessionId: `ses_${n}` });
    }

    await said(0);
    expect(reads).toBe(1);
  });

  it('is read of fewer sessions from memory when much was said in them', async () => {
    commit('a');
    for (let n = 2; n <= 1_200; n += 1) {
      stored = [];
      commit('x'.repeat(15_000), { sessionId: `ses_${n}` });
    }

    await said(0);
    expect(reads).toBe(1);
  });

  it('needs no reading where this host has stored it from its beginning, and ends with the offset that is asked for', async () => {
    commit('a');
    commit(null);
    commit('b');
    commit('c');

    expect(await said(2)).toEqual(['a', 'b']);
    expect(reads).toBe(0);
  });

  it('is read once where others have stored its beginning', async () => {
    stored = [{ offset: 0, kind: 'user_message', text: 'theirs' } as ConversationEvent];
    expect(await said(0)).toEqual(['theirs']);
    commit('ours');
    commit(null);

    expect(await said(2)).toEqual(['theirs', 'ours']);
    expect(reads).toBe(1);
  });
});
