import { expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { recordedGroups } from './recorded-groups.ts';

/** Lines like `customer hello`, `human_agent wait`, `system tool`, `acknowledged 1`: a status with its trace. */
function logOf(...lines: string[]): ConversationEvent[] {
  return lines.map((line, offset) => {
    const [word = '', ...rest] = line.split(' ');
    const about = { id: `evt_${offset}`, offset, created_at: new Date(offset * 1_000).toISOString(), metadata: {} };
    if (['customer', 'human_agent'].includes(word)) {
      const kind = word === 'customer' ? ('user_message' as const) : ('assistant_message' as const);
      return { ...about, kind, source: word as 'customer', trace_id: 'message', text: rest.join(' ') };
    }
    if (word === 'tool') {
      const call = { tool_id: 'crm:tier', arguments: {}, result: { data: 'gold', metadata: {} } };
      return { ...about, kind: 'tool', source: 'system', trace_id: 'message', tool_calls: [call] };
    }
    const shared = { ...about, source: 'ai_agent' as const, trace_id: rest[0] ?? '' };
    if (word === 'reply') return { ...shared, kind: 'assistant_message', text: 'a reply' };
    return { ...shared, kind: 'status', status: word as 'ready', stage: null, error_detail: null };
  });
}

const groups = (...lines: string[]) =>
  recordedGroups(logOf(...lines)).map(({ fromOffset, posts, beginOffset, endOffset }) => ({
    range: [fromOffset, beginOffset, endOffset],
    posts: posts.map((post) => `${post.type === 'message' ? post.text : post.toolId}${post.triggersTurn ? '' : ' (quiet)'}`),
  }));

it('a turn has the messages before its end, those that joined it included', () => {
  expect(groups('customer a', 'acknowledged 1', 'customer b', 'reply 1', 'ready 1', 'customer c', 'acknowledged 2', 'ready 2')).toEqual([
    { range: [0, 1, 4], posts: ['a', 'b'] },
    { range: [5, 6, 7], posts: ['c'] },
  ]);
});

it('messages of a cancelled turn belong to the next one', () => {
  const log = ['customer a', 'acknowledged 1', 'cancelled 1', 'ready 1', 'customer b', 'acknowledged 2', 'reply 2', 'ready 2'];
  expect(groups(...log)).toEqual([{ range: [0, 5, 7], posts: ['a', 'b'] }]);
});

it('turns whose messages came in one trace are told apart', () => {
  const first = ['customer a', 'acknowledged 1', 'cancelled 1', 'ready 1', 'customer b', 'acknowledged 1', 'reply 1', 'ready 1'];
  expect(groups(...first, 'customer c', 'acknowledged 1', 'reply 1', 'ready 1')).toEqual([
    { range: [0, 5, 7], posts: ['a', 'b'] },
    { range: [8, 9, 11], posts: ['c'] },
  ]);
});

it('what the agent said before is no message, and a colleague’s begins no turn', () => {
  expect(groups('reply 0', 'human_agent wait', 'customer a', 'acknowledged 1', 'ready 1')).toEqual([{ range: [1, 3, 4], posts: ['wait (quiet)', 'a'] }]);
});

it('where the customer says nothing, the last event has begun the turn', () => {
  expect(groups('human_agent wait', 'tool', 'acknowledged 1', 'ready 1')).toEqual([{ range: [0, 2, 3], posts: ['wait (quiet)', 'crm:tier'] }]);
});

it('a turn in progress, and the end of a run, are none', () => {
  expect(groups('ready 0', 'customer a', 'acknowledged 1')).toEqual([]);
});
