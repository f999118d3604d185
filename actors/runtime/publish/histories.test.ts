import { beforeEach, describe, expect, it } from 'vitest';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import { commandRows } from '../../test-support/command-rows.ts';
import { CommitPlan } from '../apply/commit-plan.ts';
import { Histories } from './histories.ts';

const ours = { sessionId: 'ses_1', partition: 7 };
/** The store's events, and the number of its reads. */
let stored: ConversationEvent[];
let reads: number;
let histories: Histories;

beforeEach(() => {
  stored = [];
  reads = 0;
  const messages = async (_sessionId: string, upToOffset: number, most: number) => {
    reads += 1;
    return stored.filter((event) => event.kind !== 'status' && event.offset <= upToOffset).slice(-most);
  };
  histories = new Histories({ messages });
});

/** Appends an event by a commit that stored some partitions. */
function commit(text: string | null, { owned = [7], sessionId = 'ses_1' }: { owned?: number[]; sessionId?: string } = {}): void {
  const content: EventContent = text === null ? { kind: 'status', status: 'ready', stage: null, error_detail: null } : { kind: 'user_message', text };
  commitEvent(content, 'customer', { owned, sessionId });
}

function commitEvent(content: EventContent, source: EventSource, { owned = [7], sessionId = 'ses_1' }: { owned?: number[]; sessionId?: string } = {}): void {
  const plan = new CommitPlan();
  const offset = stored.length;
  const event: ConversationEvent = { id: `evt_${offset}`, offset, created_at: '', source, trace_id: '', metadata: {}, ...content };
  plan.merge(commandRows({ sessionId, events: [{ partition: 7, sessionId, event, text: '' }] }));
  if (owned.includes(7)) stored.push(event);
  histories.release(plan, new Set(owned));
}

const newest = (offset: number) => stored.filter((event) => event.kind !== 'status' && event.offset <= offset).slice(-400);

const textsUpTo = async (offset: number) => (await histories.upTo(offset, ours)).map((event) => ('text' in event ? event.text : event.kind));

describe('the history of a session', () => {
  it('is read again when the log grew while it was being read', async () => {
    stored = Array.from({ length: 3 }, (_, offset) => ({ offset, kind: 'user_message', text: `${offset}` }) as ConversationEvent);
    const reading = textsUpTo(2);
    commit('3');
    await reading;
    commit('4');

    expect(await textsUpTo(4)).toEqual(['0', '1', '2', '3', '4']);
    expect(reads).toBe(2);
  });

  it.each(['before', 'while'])('has no event that was deleted after it was read: the reading ended %s', async (when) => {
    stored = ['a', 'b'].map((text, offset) => ({ offset, kind: 'user_message', text }) as ConversationEvent);
    const reading = textsUpTo(1);
    if (when === 'before') await reading;
    const plan = new CommitPlan();
    plan.merge(commandRows({ deletedEvents: [{ partition: 7, sessionId: 'ses_1', fromOffset: 1, toOffset: 2, atMs: 0 }] }));
    stored = stored.slice(0, 1);
    histories.release(plan, new Set([7]));
    await reading;

    expect(await textsUpTo(1)).toEqual(['a']);
  });

  it('does not include events of a commit that was fenced', async () => {
    commit('a');
    commit('lost', { owned: [8] });

    expect(await textsUpTo(0)).toEqual(['a']);
    commit('b');
    expect(await textsUpTo(1)).toEqual(['a', 'b']);
  });

  it('is dropped with its partition, and with the session', async () => {
    commit('a');
    histories.forget(7);
    stored = [];
    expect(await textsUpTo(0)).toEqual([]);

    commit('b');
    const deletion = new CommitPlan();
    deletion.merge(commandRows({ partition: 7, isErased: true }));
    histories.release(deletion, new Set([7]));
    stored = [];
    expect(await textsUpTo(0)).toEqual([]);
    expect(reads).toBe(2);
  });

  it('is not cached when it has become long', async () => {
    commit('a');
    commit('x'.repeat(600_000));
    expect(await textsUpTo(1)).toHaveLength(2);
    expect(await textsUpTo(1)).toHaveLength(2);

    expect(reads).toBe(2);
  });

  it('is cached for at most ten thousand sessions, those with the latest events', async () => {
    commit('a');
    for (let n = 2; n <= 10_001; n += 1) {
      stored = [];
      commit('b', { sessionId: `ses_${n}` });
    }

    await textsUpTo(0);
    expect(reads).toBe(1);
  });

  it('has the newest 400 messages, of which the cache keeps some more, for each offset that a turn may end at', async () => {
    for (let n = 0; n < 650; n += 1) {
      commit(`${n}`);
      if (n % 90 === 0) commit(null);
      const offset = stored.length - 1;
      for (const back of [0, 1, 2, 3]) expect(await histories.upTo(offset - back, ours)).toEqual(newest(offset - back));
    }
    expect(reads).toBe(0);

    expect(await histories.upTo(430, ours)).toEqual(newest(430));
    expect(reads).toBe(1);
    commit('the newest');
    expect(await histories.upTo(stored.length - 1, ours)).toEqual(newest(stored.length - 1));
    expect(reads).toBe(1);
  });

  it('is not read when it has 400 messages of ordinary length, and later ones take the place of the first', async () => {
    for (let n = 0; n < 700; n += 1) {
      commit(`${n}`.padEnd(900, 'x'));
      if (n > 400) expect(await histories.upTo(stored.length - 1, ours)).toEqual(newest(stored.length - 1));
    }
    expect(reads).toBe(0);
  });

  it('is read once where the cache has it from the middle', async () => {
    stored = Array.from({ length: 500 }, (_, offset) => ({ offset, kind: 'user_message', text: `${offset}` }) as ConversationEvent);
    expect(await histories.upTo(499, ours)).toEqual(newest(499));
    for (let n = 0; n < 200; n += 1) {
      commit(`${n}`);
      expect(await histories.upTo(stored.length - 1, ours)).toEqual(newest(stored.length - 1));
    }
    expect(reads).toBe(1);
  });

  it('is cached for fewer sessions when their events are large', async () => {
    commit('a');
    for (let n = 2; n <= 1_200; n += 1) {
      stored = [];
      commit('x'.repeat(15_000), { sessionId: `ses_${n}` });
    }

    await textsUpTo(0);
    expect(reads).toBe(1);
  });

  it('is not read where this host has stored it from its beginning, and ends at the requested offset', async () => {
    commit('a');
    commit(null);
    commit('b');
    commit('c');

    expect(await textsUpTo(2)).toEqual(['a', 'b']);
    expect(reads).toBe(0);
  });

  it('includes results of tools, injected or called', async () => {
    commit('a');
    for (const source of ['system', 'ai_agent'] as const) {
      const call = { tool_id: source, arguments: {}, result: { data: 1, metadata: {} } };
      commitEvent({ kind: 'tool', tool_calls: [call] }, source);
    }

    expect((await histories.upTo(2, ours)).map((event) => (event.kind === 'tool' ? event.tool_calls[0]?.tool_id : event.kind))).toEqual([
      'user_message',
      'system',
      'ai_agent',
    ]);
    expect(reads).toBe(0);
  });

  it('is not cached when an injected result has made it long', async () => {
    commit('a');
    commitEvent({ kind: 'tool', tool_calls: [{ tool_id: 't', arguments: {}, result: { data: 'x'.repeat(600_000), metadata: {} } }] }, 'system');
    await histories.upTo(1, ours);

    expect(reads).toBe(1);
  });

  it('is read once where another host has stored its beginning', async () => {
    stored = [{ offset: 0, kind: 'user_message', text: 'theirs' } as ConversationEvent];
    expect(await textsUpTo(0)).toEqual(['theirs']);
    commit('ours');
    commit(null);

    expect(await textsUpTo(2)).toEqual(['theirs', 'ours']);
    expect(reads).toBe(1);
  });
});
