import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { fillPlaceholders, type PlaceholderValues } from './fill-placeholders.ts';

/** Input of one turn's prompt. The same input gives the same prompt in any process at any time. */
export interface ComposeInput extends PlaceholderValues {
  systemPrompt: string;
  /** `match_user`, or an instruction that is passed on verbatim. */
  language: string;
  /** In the order of the log. Events of kinds without text are skipped. */
  history: readonly ConversationEvent[];
}

/** The messages of a turn's model call: the system prompt, then the conversation. */
export function composePrompt(input: ComposeInput): ChatMessage[] {
  const system = `${fillPlaceholders(input.systemPrompt, input)}\n\n${languageRule(input.language)}`;
  return [{ role: 'system', content: system }, ...input.history.flatMap(toMessage)];
}

function toMessage(event: ConversationEvent): ChatMessage[] {
  if (event.kind === 'assistant_message' || event.kind === 'preamble') return [{ role: 'assistant', content: event.text }];
  if (event.kind !== 'user_message') return [];
  return event.source === 'system' ? [{ role: 'system', content: event.text }] : [{ role: 'user', content: event.text }];
}

function languageRule(language: string): string {
  if (language === 'match_user') return "Answer in the language of the customer's last message.";
  return `Language: ${language}`;
}
