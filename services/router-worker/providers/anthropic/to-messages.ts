import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { isObject, parseExactly } from '../exact-numbers.ts';
import type { Block, Message, TextBlock, ToolUseBlock } from './blocks.ts';
import { textBlocks, toBlocks } from './to-blocks.ts';
import { toThinkingBlocks } from './to-thinking-blocks.ts';

/** A conversation begins with the user. */
const PLACEHOLDER: TextBlock = { type: 'text', text: '.' };
const NOT_IN_IDS = /[^A-Za-z0-9_-]/g;

type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>;

export interface Conversation {
  system: TextBlock[];
  messages: Message[];
}

/**
 * The conversation as the API accepts it: alternating roles, the user first; all results of a turn's tool calls in one message, before its other content; no empty
 * text; no white space at the end of an answer to be continued.
 *
 * @throws `router.provider_refused` naming an item that the API has no block for
 */
export function toConversation(given: readonly ChatMessage[]): Conversation {
  const firstOfTurns = given.findIndex((message) => !isInstruction(message));
  const blocks = given.map((message, index) => blocksOf(message, `messages[${index}].content`));
  const instructions = blocks.slice(0, firstOfTurns === -1 ? undefined : firstOfTurns).flat();
  // Instructions alone are no conversation.
  if (firstOfTurns === -1) return { system: [], messages: [{ role: 'user', content: instructions }] };
  const messages: Message[] = [];
  for (const [index, message] of given.entries()) {
    if (index >= firstOfTurns) append(messages, message.role === 'assistant' ? 'assistant' : 'user', blocks[index] ?? []);
  }
  for (const message of messages) if (message.role === 'user') message.content = resultsFirst(message.content);
  trimEnd(messages);
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: [PLACEHOLDER] });
  return { system: instructions.filter((block) => block.type === 'text'), messages };
}

function isInstruction({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

function append(messages: Message[], role: Message['role'], content: Block[]): void {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === role) {
    for (const block of content) last.content.push(block);
  } else {
    messages.push({ role, content: [...content] });
  }
}

function resultsFirst(content: Block[]): Block[] {
  const isResult = (block: Block) => block.type === 'tool_result';
  return content.some(isResult) ? [...content.filter(isResult), ...content.filter((block) => !isResult(block))] : content;
}

function trimEnd(messages: Message[]): void {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role === 'assistant' && block?.type === 'text') block.text = block.text.trimEnd();
}

function blocksOf(message: ChatMessage, path: string): Block[] {
  switch (message.role) {
    case 'assistant':
      return [...toThinkingBlocks(message.reasoning_details), ...answerBlocks(message, path), ...(message.tool_calls ?? []).map(toToolUse)];
    case 'tool': {
      const content = toBlocks(message.content, path);
      return [{ type: 'tool_result', tool_use_id: idOf(message.tool_call_id), ...(content.length === 0 ? {} : { content }) }];
    }
    default:
      return named(toBlocks(message.content, path), message.name);
  }
}

/** Pictures of an answer can't be sent back. */
function answerBlocks({ content, refusal, name }: AssistantMessage, path: string): Block[] {
  const texts = toBlocks(content, path).filter((block) => block.type === 'text');
  return named(texts.length === 0 ? textBlocks(refusal ?? '') : texts, name);
}

/** The API has no names of participants. */
function named<Item extends Block>(blocks: Item[], name: string | undefined): (Item | TextBlock)[] {
  if (name === undefined || blocks.length === 0) return blocks;
  const [first, ...rest] = blocks;
  if (first?.type === 'text') return [{ ...first, text: `${name}: ${first.text}` }, ...rest];
  return [{ type: 'text', text: `${name}:` }, ...blocks];
}

function toToolUse({ id, function: { name, arguments: text } }: NonNullable<AssistantMessage['tool_calls']>[number]): ToolUseBlock {
  return { type: 'tool_use', id: idOf(id), name, input: inputOf(text) };
}

/** Ids of other vendors may have characters that the API refuses. */
function idOf(id: string): string {
  return id.replace(NOT_IN_IDS, '_');
}

/** The API takes objects alone; the text of a cut call is none. */
function inputOf(text: string): object {
  if (text.trim() === '') return {};
  try {
    const value = parseExactly(text);
    return isObject(value) ? value : { value };
  } catch {
    return { arguments: text };
  }
}
