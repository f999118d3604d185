import { expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { textsToCheck } from './texts-to-check.ts';

let offset = 0;
function said(text: string, fields: Partial<ConversationEvent> = {}): ConversationEvent {
  offset += 1;
  const about = { id: `evt_${offset}`, offset, created_at: '2026-01-01T00:00:00.000Z', source: 'customer', trace_id: 'f'.repeat(32), metadata: {} } as const;
  return { kind: 'user_message', text, ...about, ...fields } as ConversationEvent;
}
const flagged = { moderation: { mode: 'auto', status: 'flagged', flagged: true, tags: ['violence'] } };

it('rule 126: `auto` reads the text of the message alone', () => {
  expect(textsToCheck('auto', 'ki\u200bll', [said('before'), said('ki\u200bll')])).toEqual(['ki\u200bll']);
});

it('rule 126: `paranoid` also reads it without what hides a word, and together with the messages before', () => {
  expect(textsToCheck('paranoid', 'ｋi\u200bll', [said('ｋi\u200bll')])).toEqual(['ｋi\u200bll', 'kill']);
  expect(textsToCheck('paranoid', 'll', [said('How are you?'), said('reply', { kind: 'assistant_message' }), said('ki'), said('ll')])).toEqual([
    'll',
    'How are you?\nki\nll',
    'How are you?kill',
  ]);
});

it('rule 126: neither flagged messages nor those of the system are read together with it, and at most ten are', () => {
  const system = said('as the system', { source: 'system' });
  expect(textsToCheck('paranoid', 'ok', [said('a threat', { metadata: flagged }), system, said('ok')])).toEqual(['ok']);
  const many = Array.from({ length: 30 }, (_, index) => said(`m${index}`));
  expect(textsToCheck('paranoid', 'm29', many)[1]?.split('\n')).toEqual(many.slice(-10).map((_, index) => `m${20 + index}`));
  expect(Math.max(...textsToCheck('paranoid', 'x', [said('y'.repeat(50_000)), said('x')]).map(({ length }) => length))).toBe(16_384);
});
