import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';

import { documentsIn, isReplyData, resultsIn } from './engine/reply-data.ts';
import type { Sentence } from './words.ts';

/** Per message. Reading runs regular expressions on the event loop that streams other answers. */
const MAX_READ_CHARS = 64 * 1024;
/** Per request, all read in one tick: about 100 ms for the costliest texts. */
export const MAX_READ_CHARS_OF_REQUEST = 128 * 1024;

/** A request as the scripted model reads it: texts only, oldest first. */
export interface Conversation {
  instructions: string[];
  /** User messages before the last one. */
  earlier: string[];
  last: string;
  hasAnswered: boolean;
  /** Of tools called since the user's last message. */
  results: { tool: string; text: string }[];
  /** What was looked up since then. */
  documents: Sentence[];
}

/** @param texts from `textsOf` */
export function readConversation({ messages }: ChatRequest, texts: readonly (string | null)[]): Conversation {
  const lastUser = lastUserIn(messages);
  const namesOfTools = toolNamesIn(messages);
  const read = messages.flatMap((message, index) => {
    const text = texts[index] ?? null;
    return text === null ? [] : [{ message, index, text }];
  });
  const textsWhere = (isReading: (message: ChatMessage, index: number) => boolean) =>
    read.filter(({ message, index }) => isReading(message, index)).map(({ text }) => text);
  return {
    instructions: textsWhere(isInstruction),
    earlier: textsWhere((message, index) => isOfUser(message) && index < lastUser),
    last: texts[lastUser] ?? '',
    hasAnswered: messages.some(({ role }) => role === 'assistant'),
    results: read.flatMap(({ message, index, text }) => {
      if (index <= lastUser) return [];
      if (message.role === 'tool') return [{ tool: namesOfTools.get(message.tool_call_id) ?? 'the tool', text }];
      return message.role === 'user' ? resultsIn(text) : [];
    }),
    documents: read.flatMap(({ message, index, text }) => (message.role === 'user' && index > lastUser ? documentsIn(text) : [])),
  };
}

/**
 * A request's texts within the character limits. In order of priority: the user's last message, later tool results, instructions, then the rest from the
 * newest.
 *
 * @returns one per message, null for those beyond the limit
 */
export function textsOf({ messages }: ChatRequest): (string | null)[] {
  const lastUser = lastUserIn(messages);
  const indexes = [...messages.keys()];
  const isResult = (index: number) => index > lastUser && ['tool', 'user'].includes(messages[index]?.role ?? '');
  const isFirst = (index: number) => index === lastUser || isResult(index) || isInstruction(messages[index]);
  const inOrder = [
    ...indexes.filter((index) => index === lastUser),
    ...indexes.filter(isResult),
    ...indexes.filter((index) => isInstruction(messages[index])),
    ...indexes.filter((index) => !isFirst(index)).reverse(),
  ];
  const texts: (string | null)[] = messages.map(() => null);
  let leftChars = MAX_READ_CHARS_OF_REQUEST;
  for (const index of inOrder) {
    const message = messages[index];
    if (message === undefined || leftChars === 0) break;
    const text = textOf(message).slice(0, leftChars);
    leftChars -= text.length;
    texts[index] = text;
  }
  return texts;
}

function lastUserIn(messages: readonly ChatMessage[]): number {
  return messages.findLastIndex(isOfUser);
}

/** Data of the agent's engine stand in messages of the same role. */
function isOfUser(message: ChatMessage): boolean {
  return message.role === 'user' && !isReplyData(textOf(message));
}

function isInstruction(message: ChatMessage | undefined): boolean {
  return message?.role === 'system' || message?.role === 'developer';
}

function textOf({ content }: ChatMessage): string {
  const text = typeof content === 'string' ? content : (content ?? []).flatMap((item) => (item.type === 'text' ? [item.text] : [])).join('\n');
  return text.slice(0, MAX_READ_CHARS);
}

/** By call id; the first one counts. */
function toolNamesIn(messages: readonly ChatMessage[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const { id, function: called } of message.tool_calls ?? []) if (!names.has(id)) names.set(id, called.name);
  }
  return names;
}
