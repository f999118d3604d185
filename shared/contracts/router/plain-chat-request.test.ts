import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chatRequest } from './chat-request.ts';
import { isPlainChatRequest } from './plain-chat-request.ts';

/** Mostly valid, now and then anything. */
const or = <Value>(fitting: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 15, arbitrary: fitting }, fc.constantFrom(null, '', 0, -1, 0.5, 1e300, true, [], {}), fc.jsonValue({ maxDepth: 1 }));
const text = or(fc.string({ maxLength: 5 }));
const count = or(fc.integer({ min: -1, max: 100 }));
const message = or(
  fc.record(
    {
      role: or(fc.constantFrom('user', 'system', 'assistant', 'developer', 'tool')),
      content: text,
      name: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, text),
    },
    { requiredKeys: ['role'] },
  ),
);
const request = or(
  fc.record(
    {
      messages: or(fc.array(message, { maxLength: 3 })),
      model: text,
      stream: or(fc.boolean()),
      user: text,
      max_tokens: count,
      max_completion_tokens: count,
      temperature: or(fc.double({ min: -0.1, max: 2.1 })),
      stop: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, text),
    },
    { requiredKeys: ['messages'] },
  ),
);
/** As received from the network. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('a plain request', () => {
  it('passes the schema unchanged', () => {
    let plain = 0;
    fc.assert(
      fc.property(request, (made) => {
        const value = sent(made);
        if (!isPlainChatRequest(value)) return;
        plain += 1;
        expect(chatRequest.safeParse(value)).toEqual({ success: true, data: value });
      }),
      { numRuns: 3_000 },
    );
    expect(plain).toBeGreaterThan(20);
  });

  it.each([
    ['a field that is not looked into', { messages: [{ role: 'user', content: 'a' }], tools: [] }],
    ['a message with a name', { messages: [{ role: 'user', content: 'a', name: 'b' }] }],
    ['a message without a text', { messages: [{ role: 'assistant' }] }],
    ['content in parts', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }],
    ['no message', { messages: [] }],
    ['no list of messages', { model: 'm' }],
    ['more tokens than a number can count', { messages: [{ role: 'user', content: 'a' }], max_tokens: 2 ** 60 }],
  ])('is none with %s', (_name, value) => {
    expect(isPlainChatRequest(value)).toBe(false);
  });

  it('is what most clients send', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ];
    expect(isPlainChatRequest({ model: 'm', messages, stream: true, temperature: 0.2, max_tokens: 100 })).toBe(true);
  });
});
