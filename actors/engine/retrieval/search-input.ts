import type { ToolWork } from '#bus/messages/tool.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { withheldOf } from '../moderation/withheld.ts';

/** Of all messages that a search gets; older ones are left out. */
const MAX_CHARACTERS = 128 * 1024;

type Input = Pick<Extract<ToolWork, { type: 'search' }>, 'query' | 'messages'>;
type Message = Input['messages'][number];

/**
 * What a search gets of a conversation; messages that are withheld from models never. The query is the customer's newest message, and empty without one.
 */
export function searchInput(history: readonly ConversationEvent[], maxMessages: number): Input {
  const messages = history.flatMap((event) => messageOf(event) ?? []);
  const own = messages.findLast(({ role }) => role === 'user')?.text ?? '';
  return { query: own, messages: newestWithin(messages, maxMessages) };
}

function newestWithin(messages: readonly Message[], maxMessages: number): Message[] {
  const newest = maxMessages === 0 ? [] : messages.slice(-maxMessages);
  let characters = 0;
  const firstKept = newest.findLastIndex(({ text }) => {
    characters += text.length;
    return characters > MAX_CHARACTERS;
  });
  return newest.slice(firstKept + 1);
}

function messageOf(event: ConversationEvent): Message | null {
  if (event.kind !== 'user_message' && event.kind !== 'assistant_message' && event.kind !== 'preamble') return null;
  if (event.kind === 'user_message' && withheldOf(event.metadata) !== null) return null;
  const role = event.kind !== 'user_message' ? 'assistant' : event.source === 'system' ? 'system' : 'user';
  return { role, text: event.text, createdAt: event.created_at };
}
