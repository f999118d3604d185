import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { isObject, parseExactly } from '../exact-numbers.ts';
import { LOST_SIGNATURE, signaturesIn } from './signatures.ts';
import { type RequestPart, toContentParts } from './to-content-parts.ts';

/** A conversation begins with the user. */
const PLACEHOLDER: RequestPart = { text: '.' };

type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>;
type ToolMessage = Extract<ChatMessage, { role: 'tool' }>;

interface Content {
  role: 'user' | 'model';
  parts: RequestPart[];
}

export interface Conversation {
  instructions: RequestPart[];
  contents: Content[];
}

export interface ContentOptions {
  /** Whether the model refuses a call of its own without its signature. */
  requiresSignatures: boolean;
  /** Whether the API takes ids of tool calls. */
  takesCallIds: boolean;
}

/** A turn while it is built: results of tool calls are a content of their own. */
interface Turn extends Content {
  kind: 'user' | 'model' | 'results';
}

/** @throws `router.provider_refused` naming an item that the API has no part for */
export function toConversation(messages: readonly ChatMessage[], options: ContentOptions): Conversation {
  const firstOfTurns = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const path = (index: number) => `messages[${index}].content`;
  const leading = firstOfTurns === -1 ? messages : messages.slice(0, firstOfTurns);
  const instructions = leading.flatMap((message, index) => toContentParts(message.content, path(index)));
  // Instructions alone are no conversation.
  if (firstOfTurns === -1) return { instructions: [], contents: [{ role: 'user', parts: instructions }] };
  const names = namesOfCalls(messages);
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    if (index < firstOfTurns) continue;
    if (message.role === 'tool') appendResult(turns, message, { path: path(index), name: names.get(message.tool_call_id) ?? message.tool_call_id, options });
    else if (message.role === 'assistant') append(turns, 'model', modelParts(message, path(index), options));
    else append(turns, 'user', named(toContentParts(message.content, path(index)), message.name));
  }
  if (turns[0]?.role === 'model') turns.unshift({ kind: 'user', role: 'user', parts: [PLACEHOLDER] });
  return { instructions, contents: turns.map(({ role, parts }) => ({ role, parts })) };
}

function namesOfCalls(messages: readonly ChatMessage[]): ReadonlyMap<string, string> {
  return new Map(
    messages.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id, function: { name } }) => [id, name]) : [])),
  );
}

function append(turns: Turn[], kind: Turn['kind'], parts: readonly RequestPart[]): void {
  if (parts.length === 0) return;
  const last = turns.at(-1);
  if (last?.kind === kind) {
    for (const part of parts) last.parts.push(part);
  } else {
    turns.push({ kind, role: kind === 'model' ? 'model' : 'user', parts: [...parts] });
  }
}

interface ResultContext {
  path: string;
  name: string;
  options: ContentOptions;
}

/** All results of a turn are one content, directly behind the calls; their pictures follow as the user's. */
function appendResult(turns: Turn[], { content, tool_call_id: id }: ToolMessage, { path, name, options }: ResultContext): void {
  const parts = toContentParts(content, path);
  const text = parts.map((part) => ('text' in part ? part.text : '')).join('');
  const result: RequestPart = { functionResponse: { ...(options.takesCallIds ? { id } : {}), name, response: responseOf(text) } };
  const afterCalls = turns.findLastIndex(({ kind }) => kind === 'model') + 1;
  const results = turns[afterCalls];
  if (results?.kind === 'results') results.parts.push(result);
  else turns.splice(afterCalls, 0, { kind: 'results', role: 'user', parts: [result] });
  append(
    turns,
    'user',
    parts.filter((part) => !('text' in part)),
  );
}

/** The API takes objects alone. */
function responseOf(text: string): object {
  const value = jsonOf(text);
  return isObject(value) ? value : { output: text };
}

/** Thoughts are not sent back: their signatures stand for them. */
function modelParts(
  { content, refusal, name, tool_calls: calls = [], reasoning_details: details }: AssistantMessage,
  path: string,
  options: ContentOptions,
): RequestPart[] {
  const { ofCalls, ofText } = signaturesIn(details);
  const given = toContentParts(content, path);
  const texts = named(given.length === 0 && refusal ? [{ text: refusal }] : given, name);
  const isSigned = calls.some(({ id }) => ofCalls.has(id));
  // Of parallel calls the first alone is signed.
  const lost = options.requiresSignatures && !isSigned ? LOST_SIGNATURE : undefined;
  const callParts = calls.map(({ id, function: { name: called, arguments: text } }, index): RequestPart => {
    const signature = ofCalls.get(id) ?? (index === 0 ? lost : undefined);
    const args = jsonOf(text);
    return {
      functionCall: { ...(options.takesCallIds ? { id } : {}), name: called, args: isObject(args) ? args : text.trim() === '' ? {} : { arguments: text } },
      ...(signature === undefined ? {} : { thoughtSignature: signature }),
    };
  });
  return [...signed(texts, ofText), ...callParts];
}

/** The signature of an answer's text is on its last part. */
function signed(texts: readonly RequestPart[], signature: string | null): RequestPart[] {
  if (signature === null) return [...texts];
  const last = texts.at(-1);
  return last === undefined ? [{ text: '', thoughtSignature: signature }] : [...texts.slice(0, -1), { ...last, thoughtSignature: signature }];
}

/** The API has no names of participants. */
function named(parts: RequestPart[], name: string | undefined): RequestPart[] {
  if (name === undefined || parts.length === 0) return parts;
  const [first, ...rest] = parts;
  return first !== undefined && 'text' in first ? [{ ...first, text: `${name}: ${first.text}` }, ...rest] : [{ text: `${name}:` }, ...parts];
}

function jsonOf(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
