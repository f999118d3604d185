import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { fillPlaceholders, type PlaceholderValues } from './fill-placeholders.ts';

/** Input of one turn's prompt; equal inputs give equal prompts in any process. */
export interface ComposeInput extends PlaceholderValues {
  systemPrompt: string;
  /** `match_user`, or a verbatim instruction. */
  language: string;
  /** In log order; kinds without text are skipped. */
  history: readonly ConversationEvent[];
}

/** A turn's messages: the system prompt, then the conversation. */
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
