import { z } from 'zod';

const MAX_TAGS = 32;

/** In the metadata of a customer's message: what moderation has found, or a caller's own mark. */
const flagged = z.object({ moderation: z.object({ flagged: z.literal(true), tags: z.array(z.string()).catch([]) }) });

/** Its check has not ended, or has ended without a result. */
const unchecked = z.object({ moderation: z.object({ status: z.enum(['pending', 'unavailable']) }) });

/** Why models do not see a message's text. The list may be empty. */
export type Withheld = { reason: 'flagged'; tags: readonly string[] } | { reason: 'unchecked' };

/** Null: models see the message. */
export function withheldOf(metadata: Record<string, unknown>): Withheld | null {
  // Nearly all messages.
  if (metadata['moderation'] === undefined) return null;
  const { success, data } = flagged.safeParse(metadata);
  if (success) return { reason: 'flagged', tags: data.moderation.tags.slice(0, MAX_TAGS) };
  return unchecked.safeParse(metadata).success ? { reason: 'unchecked' } : null;
}
