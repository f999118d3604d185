import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import type { ThinkingBlock } from '../anthropic/blocks.ts';
import { toThinkingBlocks } from '../anthropic/to-thinking-blocks.ts';
import { isObject, parseExactly } from '../exact-numbers.ts';
import { type Block, type Marked, marked, type ReasoningContent, type TextBlock, type ToolUse } from './blocks.ts';
import { MAX_NAME_CHARS, refusal, textBlocks, toContent } from './to-content.ts';

/** A conversation begins with the user, and documents need a text beside them. */
const PLACEHOLDER: Marked<TextBlock> = { item: { text: '.' } };
const NOT_IN_IDS = /[^A-Za-z0-9_-]/g;
const MAX_ID_CHARS = 64;
/** Of one conversation; the API takes far fewer. */
const MAX_DOCUMENTS = 100;

type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>;

export interface MarkedMessage {
  role: 'user' | 'assistant';
  content: Marked<Block>[];
}

export interface Conversation {
  system: Marked<TextBlock>[];
  messages: MarkedMessage[];
}

export interface ConversationOptions {
  /** Whether the model takes its reasoning back. */
  takesReasoning: boolean;
}

/**
 * The conversation as the API accepts it: alternating roles, the user first; all results of a turn's tool calls in one message, before its other content; no empty
 * text; no white space at the end of an answer to be continued.
 *
 * @throws `router.provider_refused` naming an item that the API has no block for, or for too many documents
 */
export function toConversation(given: readonly ChatMessage[], options: ConversationOptions): Conversation {
  const firstOfTurns = given.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const blocks = given.map((message, index) => blocksOf(message, `messages[${index}].content`, options));
  const instructions = blocks.slice(0, firstOfTurns === -1 ? undefined : firstOfTurns).flat();
  // Instructions alone are no conversation.
  if (firstOfTurns === -1) return { system: [], messages: [{ role: 'user', content: instructions }] };
  const messages: MarkedMessage[] = [];
  for (const [index, message] of given.entries()) {
    if (index >= firstOfTurns) append(messages, message.role === 'assistant' ? 'assistant' : 'user', blocks[index] ?? []);
  }
  for (const message of messages) if (message.role === 'user') message.content = completed(message.content);
  trimEnd(messages);
  nameDocuments(messages);
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: [PLACEHOLDER] });
  return { system: instructions.flatMap(({ item, ...mark }) => ('text' in item ? [{ item, ...mark }] : [])), messages };
}

function append(messages: MarkedMessage[], role: MarkedMessage['role'], content: Marked<Block>[]): void {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === role) {
    for (const block of content) last.content.push(block);
  } else {
    messages.push({ role, content: [...content] });
  }
}

/** Results first, and a text beside documents. */
function completed(content: Marked<Block>[]): Marked<Block>[] {
  const isResult = ({ item }: Marked<Block>) => 'toolResult' in item;
  const isBare = content.some(({ item }) => 'document' in item) && !content.some(({ item }) => 'text' in item);
  return [...content.filter(isResult), ...content.filter((block) => !isResult(block)), ...(isBare ? [PLACEHOLDER] : [])];
}

function trimEnd(messages: MarkedMessage[]): void {
  const last = messages.at(-1);
  const block = last?.content.at(-1)?.item;
  if (last?.role === 'assistant' && block !== undefined && 'text' in block) block.text = block.text.trimEnd();
}

/** The API refuses two documents of one name. */
function nameDocuments(messages: readonly MarkedMessage[]): void {
  const items = messages.flatMap(({ content }) => content.flatMap(({ item }) => ('toolResult' in item ? item.toolResult.content : [item])));
  const documents = items.flatMap((item) => ('document' in item ? [item.document] : []));
  if (documents.length > MAX_DOCUMENTS) throw refusal('messages', `have more than ${MAX_DOCUMENTS} documents`);
  const names = new Set<string>();
  /** By name; numbers below it are taken. */
  const numbers = new Map<string, number>();
  for (const document of documents) {
    const { name } = document;
    let number = numbers.get(name) ?? 2;
    for (; names.has(document.name); number += 1) document.name = numbered(name, number);
    numbers.set(name, number);
    names.add(document.name);
  }
}

function numbered(name: string, number: number): string {
  const suffix = ` ${number}`;
  return `${name.slice(0, MAX_NAME_CHARS - suffix.length).trimEnd()}${suffix}`;
}

function blocksOf(message: ChatMessage, path: string, { takesReasoning }: ConversationOptions): Marked<Block>[] {
  switch (message.role) {
    case 'assistant': {
      const reasoning = takesReasoning ? toThinkingBlocks(message.reasoning_details).map((block) => ({ item: reasoningOf(block) })) : [];
      return [...reasoning, ...answerBlocks(message, path), ...(message.tool_calls ?? []).map((call) => ({ item: toToolUse(call) }))];
    }
    case 'tool': {
      const content = toContent(message.content, path);
      // A result has no place for a cache point inside.
      const mark = content.findLast(({ cache_control: one }) => one !== undefined)?.cache_control;
      return [marked({ toolResult: { toolUseId: idOf(message.tool_call_id), content: content.map(({ item }) => item) } }, mark)];
    }
    default:
      return named(toContent(message.content, path), message.name);
  }
}

function reasoningOf(block: ThinkingBlock): ReasoningContent {
  if (block.type === 'redacted_thinking') return { reasoningContent: { redactedContent: block.data } };
  return { reasoningContent: { reasoningText: { text: block.thinking, signature: block.signature } } };
}

/** Pictures of an answer can't be sent back. */
function answerBlocks({ content, refusal, name }: AssistantMessage, path: string): Marked<Block>[] {
  const texts = toContent(content, path).filter(({ item }) => 'text' in item);
  return named(texts.length === 0 ? textBlocks(refusal ?? '') : texts, name);
}

/** The API has no names of participants. */
function named(blocks: Marked<Block>[], name: string | undefined): Marked<Block>[] {
  if (name === undefined || blocks.length === 0) return blocks;
  const [first, ...rest] = blocks;
  if (first !== undefined && 'text' in first.item) return [{ ...first, item: { text: `${name}: ${first.item.text}` } }, ...rest];
  return [{ item: { text: `${name}:` } }, ...blocks];
}

function toToolUse({ id, function: { name, arguments: text } }: NonNullable<AssistantMessage['tool_calls']>[number]): ToolUse {
  return { toolUse: { toolUseId: idOf(id), name, input: inputOf(text) } };
}

/** Ids of other vendors may be longer, or have characters that the API refuses. */
function idOf(id: string): string {
  return id.replace(NOT_IN_IDS, '_').slice(-MAX_ID_CHARS);
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
