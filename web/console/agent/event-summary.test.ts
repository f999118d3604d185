import { expect, it } from 'vitest';
import type { AgentEvent } from '#client/api.ts';
import { moderationOf } from './event-summary.ts';

const message = (metadata: unknown) => ({ kind: 'user_message', offset: 0, created_at: '2026-01-01T00:00:00.000Z', text: 'Hello', metadata }) as AgentEvent;

it.each([
  ['flagged, with the reasons', { moderation: { mode: 'auto', status: 'flagged', flagged: true, tags: ['harassment', 'hate'] } }, 'flagged: harassment, hate'],
  ['passed', { moderation: { mode: 'auto', status: 'passed', flagged: false, tags: [] } }, 'passed'],
  ['not checked, since that failed', { moderation: { mode: 'auto', status: 'unavailable' } }, 'unavailable'],
  ['not to be checked', { page: 3 }, ''],
  ['without metadata', undefined, ''],
  ['with a mark of another form', { moderation: 'strict' }, ''],
])('says of a message that it was %s', (_, metadata, expected) => {
  expect(moderationOf(message(metadata))).toBe(expected);
});
