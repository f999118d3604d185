import type { ModerationMode } from '#bus/messages/session.ts';

const MAX_TAGS = 32;
const MAX_TAG_CHARS = 100;

/** What the check of a message has found. */
export type Verdict = { type: 'passed' | 'unavailable' } | { type: 'flagged'; tags: readonly string[] };

/** In the metadata of a message whose check has begun. */
export function pendingMark(mode: ModerationMode) {
  return { moderation: { mode, status: 'pending' as const } };
}

/** The same once the check has ended. */
export function settledMark(mode: unknown, verdict: Verdict) {
  const { type: status } = verdict;
  if (status === 'unavailable') return { moderation: { mode, status } };
  const tags = verdict.type === 'flagged' ? verdict.tags.slice(0, MAX_TAGS).map((tag) => tag.slice(0, MAX_TAG_CHARS)) : [];
  return { moderation: { mode, status, flagged: status === 'flagged', tags } };
}
