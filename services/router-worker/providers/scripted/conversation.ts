import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';

/** Of one message. The model reads with regular expressions, on the event loop that streams other answers. */
const MAX_READ_CHARS = 64 * 1024;

/** A request as the scripted model sees it: texts only, oldest first. */
export interface Conversation {
  instructions: string[];
  /** What the user said before the last message. */
  earlier: string[];
  /** The user's last message. */
  last: string;
  /** Whether the model has spoken before. */
  hasAnswered: boolean;
  /** Results of tools called since the user's last message. */
  results: { tool: string; text: string }[];
}

export function readConversation({ messages }: ChatRequest): Conversation {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const said = messages.flatMap((message, place) => (message.role === 'user' && place < lastUser ? [textOf(message)] : []));
  const since = messages.slice(lastUser + 1);
  const last = messages[lastUser];
  return {
    instructions: messages.flatMap((message) => (message.role === 'system' || message.role === 'developer' ? [textOf(message)] : [])),
    earlier: said,
    last: last === undefined ? '' : textOf(last),
    hasAnswered: messages.some(({ role }) => role === 'assistant'),
    results: since.flatMap((message) => (message.role === 'tool' ? [{ tool: toolNamed(messages, message.tool_call_id), text: textOf(message) }] : [])),
  };
}

/** The text of a message, as far as it is read; images, sound and files are passed over. */
export function textOf({ content }: ChatMessage): string {
  const text = typeof content === 'string' ? content : (content ?? []).flatMap((item) => (item.type === 'text' ? [item.text] : [])).join('\n');
  return text.slice(0, MAX_READ_CHARS);
}

function toolNamed(messages: readonly ChatMessage[], callId: string): string {
  for (const message of messages) {
    const call = message.role === 'assistant' ? message.tool_calls?.find(({ id }) => id === callId) : undefined;
    if (call !== undefined) return call.function.name;
  }
  return 'the tool';
}
