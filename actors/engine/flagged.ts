import { z } from 'zod';

/** In the metadata of a customer's message that moderation flagged. */
const flag = z.object({ moderation: z.object({ flagged: z.literal(true), tags: z.array(z.string()).catch([]) }) });

const MAX_TAGS = 32;

/** Why a message is hidden from models; null when it is not. The list may be empty. */
export function flagOf(metadata: Record<string, unknown>): readonly string[] | null {
  const { success, data } = flag.safeParse(metadata);
  return success ? data.moderation.tags.slice(0, MAX_TAGS) : null;
}
