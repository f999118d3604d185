import { z } from 'zod';
import { type ModerationMode, moderationModes } from '#bus/messages/session.ts';
import { withheldOf } from './withheld.ts';

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

const mark = z.object({
  moderation: z.object({
    mode: z.enum(moderationModes).nullable().catch(null),
    status: z.enum(['pending', 'passed', 'unavailable']).nullable().catch(null),
  }),
});

/** What stands in the metadata of a message, a caller's own mark included, as prompts take it. Null: nothing does. */
export function readMark(metadata: Record<string, unknown>) {
  const { data } = mark.safeParse(metadata);
  const withheld = withheldOf(metadata);
  if (data === undefined) return null;
  const { mode, status } = data.moderation;
  if (withheld?.reason === 'flagged') return { mode, status: 'flagged' as const, tags: [...withheld.tags] };
  return status === null ? null : { mode, status, tags: [] };
}
