import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { jsonIn } from '#shared/json-in.ts';
import { DeferredMessages, jsonAroundMessages } from '#shared/prompts/deferred-messages.ts';
import { JsonWriter } from '#shared/prompts/json-writer.ts';
import { areTextMessages } from '#shared/prompts/text-messages.ts';
import { type MessagesSize, sizeOfMessages } from '#shared/prompts/text-size.ts';
import { textOfUtf8 } from '../text-of-utf8.ts';
import { type ClientCall, clientCallHead } from './router.ts';

/**
 * Of the position below, of what its messages may hold (`areTextMessages`, `TEXT_MESSAGE_FIELDS`) and of how their size is counted (`sizeOfMessages`). If one
 * of these changes, the number does: workers that do not know it parse the whole call.
 */
const FORM = 1;
/** The first field of a call whose messages need not be parsed. */
const PREFIX = '{"messagesAt":[';
const PREFIX_BYTES = Buffer.from(PREFIX);
/** Where the numbers of a position end at the latest. */
const POSITION_WITHIN_BYTES = PREFIX.length + 128;
const NAME_BYTES = Buffer.from('"messages":');
const END = '}';
/** Valid, in the place of messages that are not parsed. */
const STAND_IN = '[{"role":"user","content":""}]';

/** Of a position, beside that of its form. */
const NUMBERS = 5;
const LIST = '['.charCodeAt(0);
const LIST_END = ']'.charCodeAt(0);

/** A call as its worker reads it first. */
export interface CallJson {
  /** The message; null for what is no JSON. With deferred messages its request has others in their place. */
  body: unknown;
  /** Null: all of it is parsed. */
  messages: DeferredMessages | null;
}

/**
 * The JSON of a client's call, in UTF-8: that of `JSON.stringify`, with the position of its messages in front.
 * @param givenBytes of the request as its client wrote it
 * @returns null for messages of more than texts and calls of functions
 */
export function deferredCallBytes(call: ClientCall, request: ChatRequest, givenBytes: number): Buffer | null {
  const { messages } = request;
  if (!areTextMessages(messages)) return null;
  const { head, tail } = jsonAroundMessages(request);
  const beforeMessages = `${clientCallHead(call).slice(1)}${head}`;
  const reservedBytes = POSITION_WITHIN_BYTES + Buffer.byteLength(beforeMessages);
  const writer = new JsonWriter(reservedBytes, givenBytes);
  writer.value(messages);
  const endOfMessages = writer.lengthBytes;
  writer.json(tail);
  const { chars, extraBytes, contentChars } = sizeOfMessages(messages);
  const position = [FORM, writer.lengthBytes - reservedBytes, writer.lengthBytes - endOfMessages, chars, extraBytes, contentChars];
  writer.json(END);
  const bytes = writer.done();
  const before = `${PREFIX}${position}],${beforeMessages}`;
  const start = reservedBytes - Buffer.byteLength(before);
  bytes.write(before, start);
  return bytes.subarray(start);
}

/** Parses a call, but for its messages where a gateway has stated their position in a form that this release knows. */
export function callJson(bytes: Uint8Array): CallJson {
  const messages = messagesIn(bytes);
  if (messages !== null) {
    const { json } = messages;
    const start = json.byteOffset - bytes.byteOffset;
    const body = jsonIn(textOfUtf8(bytes.subarray(0, start)) + STAND_IN + textOfUtf8(bytes.subarray(start + json.byteLength)));
    if (body !== null) return { body, messages };
  }
  return { body: jsonIn(textOfUtf8(bytes)), messages: null };
}

/** Null without a position, and for one of an unknown form or of anything but a list named `messages`. */
function messagesIn(bytes: Uint8Array): DeferredMessages | null {
  const numbers = positionIn(bytes);
  if (numbers === null) return null;
  const [from = 0, to = 0, chars = 0, extraBytes = 0, contentChars = 0] = numbers;
  // From the end of the request, behind which the brace of the call stands.
  const start = bytes.byteLength - END.length - from;
  const end = bytes.byteLength - END.length - to;
  const isNamed = start > NAME_BYTES.byteLength && NAME_BYTES.equals(bytes.subarray(start - NAME_BYTES.byteLength, start));
  if (!isNamed || start >= end || bytes[start] !== LIST || bytes[end - 1] !== LIST_END) return null;
  const size: MessagesSize = { chars, extraBytes, contentChars };
  return new DeferredMessages(bytes.subarray(start, end), size);
}

/** Without the number of its form. */
function positionIn(bytes: Uint8Array): number[] | null {
  if (!PREFIX_BYTES.equals(bytes.subarray(0, PREFIX_BYTES.byteLength))) return null;
  const [position = ''] = textOfUtf8(bytes.subarray(PREFIX_BYTES.byteLength, POSITION_WITHIN_BYTES)).split(']', 1);
  const [form, ...numbers] = position.split(',').map(Number);
  const isKnown = form === FORM && numbers.length === NUMBERS && numbers.every((number) => Number.isSafeInteger(number) && number >= 0);
  return isKnown ? numbers : null;
}
