import { expect, it } from 'vitest';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import { searchInput } from './search-input.ts';

it('rule 75: the query is the customer’s newest message, beside the newest messages of the conversation', () => {
  const history = [
    said('user_message', 'Hello'),
    said('assistant_message', 'Good morning', 'ai_agent'),
    said('user_message', 'Does it leak?'),
    said('preamble', 'One moment.', 'ai_agent'),
    said('user_message', 'The customer is at level 2', 'system'),
  ];

  expect(searchInput(history, 3)).toEqual({
    query: 'Does it leak?',
    messages: [
      { role: 'user', text: 'Does it leak?', createdAt: AT },
      { role: 'assistant', text: 'One moment.', createdAt: AT },
      { role: 'system', text: 'The customer is at level 2', createdAt: AT },
    ],
  });
  expect(searchInput(history, 20).messages).toHaveLength(5);
});

it('rule 75: without a message of the customer nothing is searched for', () => {
  expect(searchInput([said('assistant_message', 'Hello', 'ai_agent')], 20)).toMatchObject({ query: '' });
  expect(searchInput([], 20)).toEqual({ query: '', messages: [] });
});

it('rule 75: flagged messages are neither the query nor sent beside it', () => {
  const flagged = { ...said('user_message', 'an insult'), metadata: { moderation: { flagged: true, tags: ['harassment'] } } };
  expect(searchInput([said('user_message', 'Hello'), flagged], 20)).toMatchObject({ query: 'Hello', messages: [{ text: 'Hello' }] });
});

it('rule 75: of long conversations 128 Ki characters are sent', () => {
  const history = ['a', 'b', 'c'].map((letter) => said('user_message', letter.repeat(60 * 1024)));
  expect(searchInput(history, 20).messages.map(({ text }) => text[0])).toEqual(['b', 'c']);
});

const AT = '2026-01-01T00:00:00.000Z';

function said(kind: 'user_message' | 'assistant_message' | 'preamble', text: string, source: EventSource = 'customer'): ConversationEvent {
  const content: EventContent = { kind, text };
  return { id: 'evt_1', offset: 0, created_at: AT, source, trace_id: 'f'.repeat(32), metadata: {}, ...content };
}
