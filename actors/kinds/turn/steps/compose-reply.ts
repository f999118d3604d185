import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { fillPlaceholders, type PlaceholderValues } from '../../../engine/fill-placeholders.ts';
import type { TurnStep } from './turn-step.ts';

interface ComposeInput extends PlaceholderValues {
  systemPrompt: string;
  /** `match_user`, or a verbatim instruction. */
  language: string;
  /** In log order; kinds without text are skipped. */
  history: readonly ConversationEvent[];
}

export type ComposedReply =
  | { type: 'message'; text: string; model: string; provider: string }
  /** Empty, or its upstream failed halfway. */
  | { type: 'unusable'; finishReason: string };

/** The turn's message to the customer, from the system prompt and the conversation. */
export const composeReply = {
  template: 'compose@1',

  render(input) {
    const system = `${fillPlaceholders(input.systemPrompt, input)}\n\n${languageRule(input.language)}`;
    return { messages: [{ role: 'system', content: system }, ...input.history.flatMap(toMessage)] };
  },

  read({ text, finishReason, model, provider }) {
    if (finishReason === 'error' || text.trim() === '') return { type: 'unusable', finishReason };
    return { type: 'message', text, model, provider };
  },
} as const satisfies TurnStep<ComposeInput, ComposedReply>;

function toMessage(event: ConversationEvent): ChatMessage[] {
  if (event.kind === 'assistant_message' || event.kind === 'preamble') return [{ role: 'assistant', content: event.text }];
  if (event.kind !== 'user_message') return [];
  return event.source === 'system' ? [{ role: 'system', content: event.text }] : [{ role: 'user', content: event.text }];
}

function languageRule(language: string): string {
  if (language === 'match_user') return "Answer in the language of the customer's last message.";
  return `Language: ${language}`;
}
