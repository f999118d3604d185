import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { promptSizeOf } from '#shared/credit/prompt-size.ts';
import { bodyJson, deferMessages } from '#shared/prompts/deferred-messages.ts';
import { sizeOfMessages } from '#shared/prompts/text-size.ts';
import { callJson, deferredCallBytes } from './deferred-call.ts';
import { type ClientCall, clientCallBytes, isClientCall, type RouterCall, routerCall } from './router.ts';

const call: ClientCall = {
  v: 1,
  callId: 'call',
  origin: 'gw',
  want: 'frames',
  surface: 'chat-completions',
  deadlineAtMs: 2,
  createdAtMs: 1,
  detached: false,
  republished: false,
  keyId: 'k"',
  traceparent: null,
  maxTokens: null,
};

const text = (content: string) => [{ role: 'user' as const, content }];
const toolCall = { id: 'a', type: 'function' as const, function: { name: 'f', arguments: '{"a":1}' } };

const BETWEEN: ChatRequest = { model: 'a', messages: text('a\n"b" \\ \u0001'), stream: true, tools: [], x: undefined, y: null };

const REQUESTS: [string, ChatRequest][] = [
  ['short', { messages: text('a') }],
  ['between other fields', BETWEEN],
  ['behind other fields', { 7: [], model: 'a', 'na"me\n': {}, messages: text(']},{"messages":[') }],
  ['of more than one byte each', { user: 'ü', messages: text('é 漢字 😀'), model: 'ß😀' }],
  ['of unpaired surrogates beside the messages', { user: '\ud800', messages: text('a') }],
  ['of items', { messages: [{ role: 'system', content: [{ type: 'text', text: 'é' }] }] }],
  [
    'of calls and results',
    {
      messages: [
        { role: 'assistant', content: null, tool_calls: [toolCall] },
        { role: 'tool', tool_call_id: 'a', content: '' },
      ],
    },
  ],
];

function bytesOf(request: ChatRequest): Buffer {
  const bytes = deferredCallBytes(call, request, 1);
  if (bytes === null) throw new Error('not deferred');
  return bytes;
}

/** The call as its worker has it, and whether its messages are deferred. */
function read(bytes: Uint8Array): { call: RouterCall; isDeferred: boolean } {
  const { body, messages } = callJson(bytes);
  if (!isClientCall(body)) throw new Error('no call');
  if (messages !== null) deferMessages(body.request, messages);
  return { call: body, isDeferred: messages !== null };
}

/** With another position in front. */
function withPosition(position: string, request: ChatRequest = BETWEEN): Buffer {
  return Buffer.from(
    bytesOf(request)
      .toString()
      .replace(/(?<=^\{"messagesAt":\[)[^\]]*/, position),
  );
}

describe('a call with deferred messages', () => {
  it.each(REQUESTS)('is what its gateway has, %s', (_, request) => {
    const { call: found, isDeferred } = read(bytesOf(request));
    const { messagesAt, ...fields } = found as RouterCall & { messagesAt?: unknown };

    expect(isDeferred).toBe(true);
    expect(messagesAt).toHaveLength(6);
    expect(promptSizeOf(found.request)).toEqual(promptSizeOf(request));
    expect(fields).toEqual({ ...call, request: JSON.parse(JSON.stringify(request)), reply: null });
    expect(Object.keys(found.request)).toEqual(Object.keys(JSON.parse(JSON.stringify(request))));
  });

  it.each(REQUESTS)('is written on as the same text as with parsed messages, %s', (_, request) => {
    const json = bodyJson(read(bytesOf(request)).call.request);
    if (typeof json === 'string') throw new Error('not in parts');
    expect(Buffer.concat(json).toString()).toBe(JSON.stringify(JSON.parse(JSON.stringify(request))));
  });

  it.each(REQUESTS)('is parsed whole by a worker of the release before, %s', (_, request) => {
    expect(routerCall.parse(JSON.parse(bytesOf(request).toString()))).toEqual({ ...call, request: JSON.parse(JSON.stringify(request)), reply: null });
  });

  it('has the size of its messages', () => {
    const messages = [...text('é'), { role: 'tool' as const, tool_call_id: 'a', content: '' }];
    expect(callJson(bytesOf({ messages })).messages?.size).toEqual(sizeOfMessages(messages));
  });

  it('has parsed messages in a copy of its request', () => {
    const request = { messages: text('a') };
    const copy = { ...read(bytesOf(request)).call.request, model: 'b' };
    expect(bodyJson(copy)).toBe(JSON.stringify({ ...request, model: 'b' }));
  });

  it('may have any number of messages', () => {
    const messages = Array.from({ length: 100_000 }, (_, index) => ({ role: index % 2 ? ('assistant' as const) : ('user' as const), content: '"' }));
    expect(read(bytesOf({ messages })).call.request.messages).toEqual(messages);
  });
});

describe('all of a call is parsed', () => {
  const parsed = JSON.parse(JSON.stringify(BETWEEN));
  const last = [
    ...bytesOf(BETWEEN)
      .toString()
      .matchAll(/\d+(?=[,\]])/g),
  ]
    .slice(0, 6)
    .map(Number);
  const [form = 0, from = 0, to = 0, ...size] = last;

  it('of a gateway of the release before', () => {
    const { call: found, isDeferred } = read(clientCallBytes(call, Buffer.from(JSON.stringify(parsed))));
    expect(isDeferred).toBe(false);
    expect(found).toEqual({ ...call, request: parsed, reply: null });
  });

  it.each([
    ['of a later form', [form + 1, from, to, ...size]],
    ['with a number more', [form, from, to, ...size, 1]],
    ['with a number less', [form, from, to, ...size.slice(1)]],
    ['with a negative number', [form, from, -1, ...size]],
    ['with a fraction', [form, from, to, 0.5, ...size.slice(1)]],
    ['with a number that is not exact', [form, from, to, 2 ** 60, ...size.slice(1)]],
    ['with what is no number', [form, from, to, 'null', ...size.slice(1)]],
    ['from a byte later', [form, from - 1, to, ...size]],
    ['to a byte earlier', [form, from, to + 1, ...size]],
    ['to the middle of another field', [form, from, 1, ...size]],
    ['of a list with another name', [form, '[],"y":null}'.length, ',"y":null}'.length, ...size]],
    ['from beyond the call', [form, 1_000_000, to, ...size]],
    ['from behind its end', [form, to, from, ...size]],
    ['of none', []],
  ])('whose position is %s', (_, position) => {
    const { call: found, isDeferred } = read(withPosition(String(position)));
    expect(isDeferred).toBe(false);
    expect(found.request).toEqual(parsed);
  });

  it('whose position is of a form with names', () => {
    const bytes = Buffer.from(
      bytesOf(BETWEEN)
        .toString()
        .replace(/^\{"messagesAt":\[[^\]]*\]/, '{"messagesAt":{"a":[1]}'),
    );
    const { call: found, isDeferred } = read(bytes);
    expect(isDeferred).toBe(false);
    expect(found.request).toEqual(parsed);
    expect(routerCall.safeParse(JSON.parse(bytes.toString())).success).toBe(true);
  });
});

describe('messages are not deferred', () => {
  it.each<[string, ChatRequest['messages']]>([
    ['that hold a picture', [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test' } }] }]],
    ['that are none', []],
  ])('%s', (_, messages) => {
    expect(deferredCallBytes(call, { messages }, 1)).toBeNull();
  });
});

it('a position is looked for in the first bytes of a call alone', () => {
  const inside = JSON.stringify({ messages: text('{"messagesAt":[1,1,1,1,1,1],') });
  expect(callJson(Buffer.from(inside)).messages).toBeNull();
  expect(callJson(Buffer.from('{"messagesAt":[')).body).toBeNull();
  expect(callJson(Buffer.alloc(0)).body).toBeNull();
});
