import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { chatRequest } from '../contracts/router/chat-request.ts';
import { areTextMessages } from './text-messages.ts';

const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };

describe('messages of texts alone', () => {
  const valid = (message: object) => chatRequest.parse({ messages: [message] }).messages as ChatRequest['messages'];

  it.each<[string, object]>([
    ['a text', { role: 'user', content: 'a' }],
    ['texts in items', { role: 'user', content: [{ type: 'text', text: 'a' }] }],
    ['an instruction', { content: 'a', role: 'system' }],
    ['an answer', { role: 'assistant', content: 'a' }],
    ['an answer that calls', { role: 'assistant', content: null, tool_calls: [call] }],
    ['a result', { role: 'tool', tool_call_id: 'c', content: 'a' }],
  ])('are %s', (_, message) => {
    expect(areTextMessages(valid(message))).toBe(true);
  });

  it.each<[string, object]>([
    ['a picture', { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test' } }] }],
    ['a file', { role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,' } }] }],
    ['an item of a later API', { role: 'user', content: [{ type: 'text', text: 'a', more: 'b' }] }],
    ['a mark of a cache', { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] }],
    ['an instruction whose role has two names', { role: 'developer', content: 'a' }],
    ['an answer without content', { role: 'assistant', tool_calls: [call] }],
    ['reasoning', { role: 'assistant', content: 'a', reasoning: 'b' }],
    ['reasoning in pieces', { role: 'assistant', content: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'b' }] }],
    ['a name', { role: 'user', name: 'ann', content: 'a' }],
    ['a lone surrogate', { role: 'user', content: 'a\ud800b' }],
    ['a lone surrogate in an item', { role: 'user', content: [{ type: 'text', text: '\udc00' }] }],
    ['a lone surrogate in a call', { role: 'assistant', content: null, tool_calls: [{ ...call, function: { name: 'f', arguments: '"\ud800"' } }] }],
    ['an unknown field', { role: 'user', content: 'a', id: 12345678901234567890n.toString() }],
    ['an absent refusal', { role: 'assistant', content: 'a', refusal: null }],
    ['a call with an unknown field', { role: 'assistant', content: null, tool_calls: [{ ...call, index: 0 }] }],
    ['a call of a function with an unknown field', { role: 'assistant', content: null, tool_calls: [{ ...call, function: { ...call.function, parsed: {} } }] }],
  ])('are not %s', (_, message) => {
    expect(areTextMessages(valid(message))).toBe(false);
    expect(areTextMessages([...valid({ role: 'user', content: 'a' }), ...valid(message)])).toBe(false);
  });
});
