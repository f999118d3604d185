import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { TEXT_MESSAGE_FIELDS } from './text-messages.ts';
import type { MessagesSize } from './text-size.ts';

type Messages = ChatRequest['messages'];

const DEFERRED = Symbol('deferred messages');
const NONE: Messages = [];

/** Text messages (`areTextMessages`) of a long prompt as the JSON that `JSON.stringify` makes of them; parsed when they are first read. */
export class DeferredMessages {
  /** In UTF-8; a part of the item that they came with, which keeps it until the call ends. */
  readonly json: Uint8Array;
  readonly size: MessagesSize;
  #parsed: Messages | null = null;

  constructor(json: Uint8Array, size: MessagesSize) {
    this.json = json;
    this.size = size;
  }

  read(): Messages {
    const { buffer, byteOffset, byteLength } = this.json;
    this.#parsed ??= JSON.parse(Buffer.from(buffer, byteOffset, byteLength).toString()) as Messages;
    return this.#parsed;
  }
}

/** What has messages: a request, or the body made of one. */
interface WithMessages {
  messages?: unknown;
  readonly [DEFERRED]?: DeferredMessages;
}

/** Null: its messages are parsed. So are those of a copy by spread. */
export function deferredIn(target: object): DeferredMessages | null {
  return (target as WithMessages)[DEFERRED] ?? null;
}

/** Gives a target messages that are parsed when its property is read. The property keeps its position among the others, or is the last. */
export function deferMessages<Target extends object>(target: Target, deferred: DeferredMessages): Target {
  Object.defineProperty(target, DEFERRED, { value: deferred });
  return Object.defineProperty(target, 'messages', MESSAGES);
}

/** The same for all: V8 makes a hidden class for each getter. */
const MESSAGES: PropertyDescriptor = {
  enumerable: true,
  configurable: true,
  get(this: WithMessages): Messages | undefined {
    return this[DEFERRED]?.read();
  },
};

/** A request with other fields beside the same messages, which are not parsed for it. */
export function withMessagesOf(request: ChatRequest, fields: Record<string, unknown>): ChatRequest {
  const deferred = deferredIn(request);
  return deferred === null ? { messages: request.messages, ...fields } : deferMessages({ messages: NONE, ...fields }, deferred);
}

/** Those that may hold more than texts and calls of functions; no deferred one does. */
export function messagesBeyondText(request: Pick<ChatRequest, 'messages'>): Messages {
  return deferredIn(request) === null ? request.messages : NONE;
}

/** Whether text messages are the same without these fields. */
export function areUnchangedWithout(fields: ReadonlySet<string>): boolean {
  return fields.size === 0 || !TEXT_MESSAGE_FIELDS.some((name) => fields.has(name));
}

/** The JSON of an object; deferred messages stand in it as their bytes, which are not copied. */
export function bodyJson(target: Record<string, unknown>): string | Uint8Array[] {
  const deferred = deferredIn(target);
  if (deferred === null || !Object.hasOwn(target, 'messages')) return JSON.stringify(target);
  const { head, tail } = jsonAroundMessages(target);
  return [Buffer.from(head), deferred.json, Buffer.from(tail)];
}

/** What `JSON.stringify` writes before and behind the messages of an object, which are not read. */
export function jsonAroundMessages(target: Record<string, unknown>): { head: string; tail: string } {
  let head = '{';
  let tail = '';
  let isBehind = false;
  for (const name of Object.keys(target)) {
    const isMessages = name === 'messages';
    const value = isMessages ? '' : JSON.stringify(target[name]);
    if (value === undefined) continue;
    const member = `${JSON.stringify(name)}:${value}`;
    if (isBehind) tail += `,${member}`;
    else head += head === '{' ? member : `,${member}`;
    isBehind ||= isMessages;
  }
  return { head, tail: `${tail}}` };
}
