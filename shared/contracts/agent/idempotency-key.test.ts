import { describe, expect, it } from 'vitest';
import { triggerRequest } from './run.ts';
import { postEventRequest } from './session.ts';
import { toolEventRequest } from './tool-event.ts';

describe.each([
  ['a trigger', (key: string) => triggerRequest.safeParse({ callback_url: 'https://example.com/done', idempotency_key: key })],
  ['a message', (key: string) => postEventRequest.safeParse({ kind: 'user_message', source: 'customer', text: 'Hello', idempotency_key: key })],
  ['a tool event', (key: string) => toolEventRequest.safeParse({ tool_id: 'crm:find', result: { data: 1 }, idempotency_key: key })],
])('the idempotency key of %s', (_, parse) => {
  it.each(['order-1', 'order-\u{1F600}', 'ü'.repeat(256)])('may be %j', (key) => expect(parse(key).error).toBeUndefined());

  it.each(['', 'x'.repeat(257), 'order-\ud83d', '\ude00', '\ude00\ud83d'])('may not be %#', (key) => {
    expect(parse(key).error?.issues.map(({ path }) => path)).toEqual([['idempotency_key']]);
  });
});
