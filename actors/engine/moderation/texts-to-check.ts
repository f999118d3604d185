import type { ModerationMode } from '#bus/messages/session.ts';
import { cleanText } from '#shared/clean-text.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { withheldOf } from './withheld.ts';

/** Of `paranoid`: the customer's messages that are read together with the new one. */
const MAX_TOGETHER = 10;
const MAX_TOGETHER_CHARS = 16_384;

/**
 * What moderation reads for a message: its text, and in the mode `paranoid` also what could hide something from a check of that text alone. These are the
 * text without invisible characters and in compatibility form (full-width letters as plain ones), and the customer's last messages as one text.
 * @param history up to the message, in log order
 */
export function textsToCheck(mode: ModerationMode, text: string, history: readonly ConversationEvent[]): string[] {
  if (mode === 'auto') return [text];
  const before = history.flatMap((event) => (isReadable(event) ? [event.text] : [])).slice(-MAX_TOGETHER);
  const together = before.join('\n').slice(-MAX_TOGETHER_CHARS);
  return [...new Set([text, plain(text), plain(together), plain(before.join('')).slice(-MAX_TOGETHER_CHARS)])].filter((one) => one !== '');
}

function plain(text: string): string {
  return cleanText(text).normalize('NFKC');
}

/** Of the customer, and not withheld: a flagged message would flag each one behind it. The message that is being checked has no verdict yet. */
function isReadable(event: ConversationEvent): event is ConversationEvent & { kind: 'user_message' } {
  return event.kind === 'user_message' && event.source !== 'system' && withheldOf(event.metadata)?.reason !== 'flagged';
}
