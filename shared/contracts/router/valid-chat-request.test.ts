import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chatRequest } from './chat-request.ts';
import { isValidChatRequest } from './valid-chat-request.ts';

/** Mostly valid, now and then anything. */
const or = <Value>(fitting: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 25, arbitrary: fitting }, fc.constantFrom(null, '', 0, -1, 0.5, -0, 1e300, true, [], {}), fc.jsonValue({ maxDepth: 1 }));
const text = or(fc.string({ maxLength: 5 }));
const count = or(fc.integer({ min: -1, max: 100 }));
const number = or(fc.double({ min: -2.1, max: 2.1, noNaN: true }));
const record = <Shape extends Record<string, fc.Arbitrary<unknown>>>(shape: Shape, requiredKeys: (keyof Shape & string)[] = []) =>
  or(fc.record(shape, { requiredKeys }));
const list = (item: fc.Arbitrary<unknown>) => or(fc.array(item, { maxLength: 2 }));
const toolCall = record({ id: text, type: or(fc.constant('function')), function: record({ name: text, arguments: text }, ['name', 'arguments']) }, [
  'id',
  'type',
  'function',
]);
const mark = record({ type: or(fc.constant('ephemeral')), ttl: or(fc.constantFrom('5m', '1h')) }, ['type']);
const video = record({ url: text }, ['url']);
const part = record(
  {
    type: or(fc.constantFrom('text', 'image_url', 'video_url', 'input_video', 'file')),
    text,
    cache_control: mark,
    image_url: record({ url: text }, ['url']),
    video_url: video,
    file: record({ file_data: text, filename: text }),
  },
  ['type'],
);
const detail = record(
  {
    type: or(fc.constantFrom('reasoning.text', 'reasoning.summary', 'reasoning.encrypted', 'other')),
    text,
    summary: text,
    data: text,
    index: count,
    signature: text,
  },
  ['type'],
);
const message = record(
  {
    role: or(fc.constantFrom('user', 'system', 'assistant', 'developer', 'tool')),
    content: fc.oneof({ weight: 3, arbitrary: text }, list(part)),
    name: text,
    tool_calls: list(toolCall),
    tool_call_id: text,
    reasoning: text,
    reasoning_content: text,
    reasoning_details: list(detail),
  },
  ['role', 'content'],
);
const tool = record(
  { type: or(fc.constant('function')), function: record({ name: text, parameters: record({ type: text }), strict: or(fc.boolean()) }, ['name']) },
  ['type', 'function'],
);
const fields = {
  model: text,
  models: list(text),
  stream: or(fc.boolean()),
  stream_options: record({ include_usage: or(fc.boolean()) }),
  user: text,
  session_id: text,
  max_tokens: count,
  max_completion_tokens: count,
  temperature: number,
  top_p: number,
  frequency_penalty: number,
  presence_penalty: number,
  seed: number,
  stop: fc.oneof(text, list(text)),
  tools: list(tool),
  tool_choice: or(fc.constantFrom('auto', 'none', 'required', { type: 'function', function: { name: 'f' } })),
  parallel_tool_calls: or(fc.boolean()),
  response_format: record(
    { type: or(fc.constantFrom('text', 'json_object', 'json_schema')), json_schema: record({ name: text, schema: record({ type: text }) }, ['name']) },
    ['type'],
  ),
  provider: record({
    order: list(text),
    sort: or(fc.constantFrom('price', 'latency')),
    max_price: record({ prompt: number }),
    allow_fallbacks: or(fc.boolean()),
  }),
  plugins: list(record({ id: or(fc.constantFrom('web', 'other')), max_results: count }, ['id'])),
  logit_bias: record({ a: count }),
  logprobs: or(fc.boolean()),
  top_logprobs: count,
  top_k: count,
  min_p: number,
  repetition_penalty: number,
  reasoning: record({ effort: or(fc.constantFrom('low', 'max')), max_tokens: count, enabled: or(fc.boolean()) }),
  reasoning_effort: or(fc.constantFrom('low', 'max')),
  verbosity: or(fc.constantFrom('low', 'max')),
  modalities: list(or(fc.constantFrom('text', 'image'))),
  service_tier: or(fc.constantFrom('flex', 'auto')),
  cache_control: mark,
  prediction: record({ type: or(fc.constant('content')), content: text }, ['type', 'content']),
  provider_options: record({ openai: record({ a: count }) }),
  newer_field: fc.jsonValue({ maxDepth: 1 }),
};
/** With a few of the fields: with all of them nearly none would be valid. */
const request = or(
  fc
    .tuple(
      fc.array(message, { maxLength: 3 }),
      fc.subarray(Object.keys(fields), { maxLength: 4 }).chain((names) => fc.record(pick(names))),
    )
    .map(([messages, others]): unknown => ({ messages, ...others })),
);
/** As received from the network. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function pick(names: readonly string[]): Record<string, fc.Arbitrary<unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)));
}

describe('the quick check of a request', () => {
  it("has the schema's verdict, and the schema would change nothing of what passes", () => {
    let passed = 0;
    fc.assert(
      fc.property(request, (made) => {
        const value = sent(made);
        const parsed = chatRequest.safeParse(value);
        expect(isValidChatRequest(value)).toBe(parsed.success);
        if (!parsed.success) return;
        passed += 1;
        expect(parsed.data).toEqual(value);
      }),
      { numRuns: 3_000 },
    );
    expect(passed).toBeGreaterThan(100);
  });

  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hello' },
  ];
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  it.each([
    ['sampling fields', { temperature: 0.7, top_p: 0.95, max_tokens: 1_024, stop: ['\n\n'], presence_penalty: 0, frequency_penalty: 0, seed: 7, user: 'u' }],
    ['stream options', { stream: true, stream_options: { include_usage: true } }],
    ['tools', { tools: [{ type: 'function', function: { name: 'f', parameters, strict: true } }], tool_choice: 'auto', parallel_tool_calls: false }],
    ['a response format', { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: parameters } } }],
    ['provider preferences', { provider: { order: ['openai'], allow_fallbacks: false, sort: 'price' } }],
    ['null for a default', { temperature: null, stop: null, stream: null }],
    ['a field of a newer client', { something_new: { a: 1 } }],
  ])('passes a request with %s', (_name, more) => {
    expect(isValidChatRequest({ model: 'm', messages, ...more })).toBe(true);
  });

  it.each([
    ['no message', { messages: [] }],
    ['no list of messages', { model: 'm' }],
    ['a list as the body', []],
    ['more tokens than a number can count', { messages, max_tokens: 2 ** 60 }],
    ['a number that JSON can hold and a number type cannot', { messages, temperature: Number.POSITIVE_INFINITY }],
    ['a name that a copy would not keep', JSON.parse('{"messages":[{"role":"user","content":"a"}],"__proto__":{"model":1}}')],
  ])('leaves a request with %s to the schema', (_name, value) => {
    expect(isValidChatRequest(value)).toBe(false);
  });
});
