import fc from 'fast-check';
import { expect, it } from 'vitest';
import { traitsOf } from '../../services/router-worker/providers/anthropic/model-traits.ts';
import { toRequest } from '../../services/router-worker/providers/anthropic/to-request.ts';
import type { ChatMessage, ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { refusalOf } from './anthropic-rules.ts';

const text = fc.constantFrom('', ' ', 'a', ' b ', 'c\n');
const mark = fc.constantFrom(undefined, { type: 'ephemeral' as const }, { type: 'ephemeral' as const, ttl: '1h' as const });
const item = fc.oneof(
  fc
    .record({ text, mark })
    .map(({ text: words, mark: given }) => ({ type: 'text' as const, text: words, ...(given === undefined ? {} : { cache_control: given }) })),
  fc.constant({ type: 'image_url' as const, image_url: { url: 'https://files.test/a.png' } }),
);
const texts = fc.array(item, { maxLength: 3 }).map((items) => items.filter((one) => one.type === 'text'));
const name = fc.constantFrom(undefined, 'ann');
const named = (given: string | undefined) => (given === undefined ? {} : { name: given });

const instruction = fc
  .record({ role: fc.constantFrom('system' as const, 'developer' as const), content: fc.oneof(text, texts), name })
  .map(({ name: given, ...message }): ChatMessage => ({ ...message, ...named(given) }));
const user = fc
  .record({ content: fc.oneof(text, fc.array(item, { maxLength: 3 })), name })
  .map(({ name: given, content }): ChatMessage => ({ role: 'user', content, ...named(given) }));
const details = fc.constantFrom(
  undefined,
  [{ type: 'reasoning.text', text: 'a', signature: 's', index: 0, format: 'anthropic-claude-v1' }],
  [{ type: 'reasoning.text', text: 'a', index: 0 }],
  [{ type: 'reasoning.encrypted', data: 'e' }],
);
const answer = fc
  .record({ content: fc.oneof(fc.constant(null), text, texts), details })
  .map(({ content, details: given }): ChatMessage => ({ role: 'assistant', content, ...(given === undefined ? {} : { reasoning_details: given }) }));
/** Calls and all of their results, with what clients put between them. */
const round = fc
  .record({
    content: fc.oneof(fc.constant(null), text),
    details,
    calls: fc.integer({ min: 1, max: 3 }),
    between: fc.array(fc.oneof(user, instruction), { maxLength: 1 }),
    result: text,
  })
  .map(({ content, details: given, calls, between, result }): ChatMessage[] => {
    const ids = Array.from({ length: calls }, (_, index) => `call:${index}`);
    const toolCalls = ids.map((id) => ({ id, type: 'function' as const, function: { name: 'look', arguments: id === 'call:0' ? '{"a":1}' : '' } }));
    const [first, ...rest] = ids.map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content: result }));
    return [
      { role: 'assistant', content, tool_calls: toolCalls, ...(given === undefined ? {} : { reasoning_details: given }) },
      ...(first === undefined ? [] : [first]),
      ...between,
      ...rest,
    ];
  });
const conversation = fc
  .array(
    fc.oneof(
      instruction.map((one) => [one]),
      user.map((one) => [one]),
      answer.map((one) => [one]),
      round,
    ),
    { minLength: 1, maxLength: 6 },
  )
  // Without any words there is no request to be made.
  .map((groups): ChatMessage[] => [...groups.flat(), { role: 'user', content: 'hi' }]);

const tool = fc.record({ tool: fc.constantFrom('look', 'wait', 'json'), mark, strict: fc.boolean() });
const tools = fc.uniqueArray(tool, { selector: ({ tool: one }) => one, maxLength: 3 }).map((list) =>
  list.map(({ tool: one, mark: given, strict }) => ({
    type: 'function' as const,
    function: { name: one, strict, parameters: { properties: {} } },
    ...(given === undefined ? {} : { cache_control: given }),
  })),
);
const fields: fc.Arbitrary<Partial<ChatRequest>> = fc.record(
  {
    tools,
    tool_choice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const, { type: 'function' as const, function: { name: 'look' } }),
    parallel_tool_calls: fc.boolean(),
    temperature: fc.constantFrom(0, 0.5, 2),
    top_p: fc.constantFrom(0.1, 0.97),
    top_k: fc.constant(5),
    max_tokens: fc.constantFrom(1, 1_024, 1_025, 2_000, 300_000),
    stop: fc.oneof(text, fc.array(text)),
    reasoning: fc.record(
      { effort: fc.constantFrom('xhigh' as const, 'minimal' as const, 'none' as const), max_tokens: fc.constantFrom(1, 1_500, 500_000) },
      { requiredKeys: [] },
    ),
    response_format: fc.constantFrom(
      { type: 'json_object' as const },
      { type: 'json_schema' as const, json_schema: { name: 'a', schema: { type: 'object', properties: {} } } },
    ),
    user: fc.constant('u'),
    cache_control: fc.constant({ type: 'ephemeral' as const }),
  },
  { requiredKeys: [] },
);
const models = fc.constantFrom('claude-sonnet-4-20250514', 'claude-sonnet-4-5', 'claude-opus-4-6', 'claude-opus-4-8', 'claude-opus-5-5', 'other');

it('sends nothing that breaks a documented rule of the API', () => {
  let thinking = 0;
  let results = 0;
  fc.assert(
    fc.property(conversation, fields, models, fc.boolean(), (messages, request, model, isEager) => {
      const { body } = toRequest({ model, request: { messages, ...request } }, { traits: traitsOf(model), isEager });
      const sent = JSON.parse(JSON.stringify(body));
      if (sent.thinking?.type === 'enabled' || sent.thinking?.type === 'adaptive') thinking += 1;
      if (JSON.stringify(sent).includes('tool_result')) results += 1;
      expect(refusalOf(sent)).toBeNull();
    }),
    { numRuns: 3_000 },
  );
  expect(thinking).toBeGreaterThan(50);
  expect(results).toBeGreaterThan(200);
});
