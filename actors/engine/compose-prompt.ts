import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { fillPlaceholders, type PlaceholderValues } from './fill-placeholders.ts';

/** What the reply is made from. The same input gives the same prompt in any process at any time. */
export interface ComposeInput extends PlaceholderValues {
  /** The system prompt's text, with its placeholders. */
  systemPrompt: string;
  /** `match_user`, or an instruction that is passed on word for word. */
  language: string;
  /** The conversation so far, in the order of the log. Statuses and other kinds without text are left out by the caller or here. */
  history: readonly ConversationEvent[];
}

/** The messages of the model call that makes a reply: the system prompt first, then the conversation. */
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
