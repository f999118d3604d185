import { z } from 'zod';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { withheldOf } from '../moderation/withheld.ts';
import { recentText } from '../policies/candidates.ts';

/** Of a text that is compared: models of vectors take some thousand tokens. */
export const MAX_COMPARED_CHARS = 8_000;

/** What has been said, as it is compared: the newest message with routines, the last ten messages with terms. */
export const saidText = z.enum(['message', 'talk']);
export type SaidText = z.infer<typeof saidText>;

/** Empty: nothing was said that a model may see. */
export function textSaid(which: SaidText, history: readonly ConversationEvent[]): string {
  // Of a long talk the newest words.
  if (which === 'talk') return recentText(history).slice(-MAX_COMPARED_CHARS).trim();
  const newest = history.findLast((event) => event.kind === 'user_message' && withheldOf(event.metadata) === null);
  return newest?.kind === 'user_message' ? newest.text.slice(0, MAX_COMPARED_CHARS).trim() : '';
}
