import type { ChatRequest } from '../contracts/router/chat-request.ts';

type Message = ChatRequest['messages'][number];

/** The fields that messages of texts alone may have. */
export const TEXT_MESSAGE_FIELDS = ['role', 'content', 'tool_calls', 'tool_call_id'] as const;

/**
 * Whether messages hold texts and calls of functions alone, in the form that every server of OpenAI's API takes: such messages are valid, need no rewriting there,
 * and hold no picture, file, reasoning or mark of a cache that a choice of endpoints depends on. All their values are strings without lone surrogates, which take
 * several times as long to write, but for an absent content.
 */
export function areTextMessages(messages: readonly Message[]): boolean {
  return messages.length > 0 && messages.every(isTextMessage);
}

function isTextMessage(message: Message): boolean {
  for (const name in message) if (!isTextField(name, message)) return false;
  switch (message.role) {
    case 'system':
    case 'user':
      return hasContent(message);
    case 'tool':
      return hasContent(message) && message.tool_call_id !== undefined;
    case 'assistant':
      // One without content gets `null`.
      return message.content !== undefined;
    default:
      // `developer` has another name at most servers.
      return false;
  }
}

function hasContent({ content }: Message): boolean {
  return content !== undefined && content !== null;
}

function isTextField(name: string, { [name]: value }: Record<string, unknown>): boolean {
  switch (name) {
    case 'content':
      return isText(value) || value === null || (Array.isArray(value) && value.every(isTextItem));
    case 'role':
    case 'tool_call_id':
      return isText(value);
    case 'tool_calls':
      return Array.isArray(value) && value.every(isToolCall);
    default:
      return false;
  }
}

function isTextItem(item: unknown): boolean {
  return hasOnlyTexts(item, ['type', 'text']) && item.type === 'text';
}

function isToolCall(call: unknown): boolean {
  if (typeof call !== 'object' || call === null || !('function' in call)) return false;
  const { function: called, ...rest } = call;
  return hasOnlyTexts(rest, ['id', 'type']) && rest.type === 'function' && hasOnlyTexts(called, ['name', 'arguments']);
}

function hasOnlyTexts<Name extends string>(value: unknown, names: readonly Name[]): value is Record<Name, string> {
  if (typeof value !== 'object' || value === null) return false;
  const entries = Object.entries(value);
  return entries.length === names.length && entries.every(([name, text]) => names.some((one) => one === name) && isText(text));
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}
