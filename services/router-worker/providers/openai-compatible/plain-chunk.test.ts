import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { upstreamChunk } from './chunk.ts';
import { isPlainChunk } from './plain-chunk.ts';

/** Mostly fitting values, sometimes arbitrary ones. */
const or = <Value>(fitting: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 12, arbitrary: fitting }, fc.constantFrom(null, '', 0, -1, 0.5, -0, 1e300, true, [], {}), fc.jsonValue({ maxDepth: 1 }));
const text = or(fc.string({ maxLength: 5 }));
const count = or(fc.nat({ max: 100 }));
const fields = <Shape extends Record<string, fc.Arbitrary<unknown>>>(shape: Shape) => or(fc.record(shape, { requiredKeys: [] }));
const toolCall = fields({ index: count, id: text, function: fields({ name: text, arguments: text }) });
const rarely = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 6, arbitrary: fc.constantFrom(null, undefined) }, arbitrary);
const delta = fields({
  role: text,
  content: text,
  reasoning: text,
  reasoning_content: text,
  refusal: text,
  reasoning_details: rarely(fc.array(fc.jsonValue())),
  annotations: rarely(fc.array(fc.jsonValue())),
  audio: rarely(fc.jsonValue()),
  tool_calls: rarely(fc.array(toolCall, { maxLength: 2 })),
  function_call: rarely(fields({ name: text, arguments: text })),
});
const choice = fields({
  index: count,
  delta,
  message: rarely(delta),
  finish_reason: text,
  logprobs: rarely(fields({ content: rarely(fc.array(fc.jsonValue())) })),
});
const usage = fields({
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: fields({ cached_tokens: count, cache_write_tokens: count, audio_tokens: count, video_tokens: count }),
  completion_tokens_details: fields({ reasoning_tokens: count, audio_tokens: count, image_tokens: count, rejected_prediction_tokens: count }),
  prompt_cache_hit_tokens: count,
});
const chunk = fields({
  id: text,
  system_fingerprint: text,
  service_tier: text,
  choices: or(fc.array(choice, { maxLength: 2 })),
  usage,
  x_groq: rarely(fields({ usage })),
  error: rarely(fc.jsonValue()),
});

const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const token = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] };

describe('isPlainChunk', () => {
  it.each([
    ['a text', token],
    ['the role', { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }],
    ['reasoning', { choices: [{ delta: { reasoning_content: 'a', content: null } }] }],
    ['the end', { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], usage: null }],
    ['usage', { choices: [], usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, prompt_tokens_details: { cached_tokens: 0 } } }],
    ['an error', { error: { message: 'no' } }],
    ['a text with an empty list of tool calls, as of vLLM', { choices: [{ index: 0, delta: { content: 'a', tool_calls: [] } }] }],
    [
      'a text from OpenAI',
      { service_tier: 'default', system_fingerprint: 'fp_1', choices: [{ ...token.choices[0], logprobs: null }], usage: null, obfuscation: 'aB' },
    ],
    ['a text from Azure', { choices: [{ content_filter_results: { hate: { filtered: false } }, ...token.choices[0], logprobs: null }], obfuscation: 'aB' }],
    [
      'a text from OpenRouter',
      { provider: 'OpenAI', choices: [{ ...token.choices[0], delta: { role: 'assistant', content: 'a' }, native_finish_reason: null }] },
    ],
    [
      'a text from Together',
      { choices: [{ text: 'a', seed: null, ...token.choices[0], delta: { token_id: 7, content: 'a', tool_calls: null } }], usage: null },
    ],
    ['a text from Gemini', { choices: [{ delta: { content: 'a' }, index: 0 }], usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 } }],
  ])('knows %s', (_, value) => {
    expect(isPlainChunk(value)).toBe(true);
  });

  it.each([
    ['a tool call', { choices: [{ delta: { tool_calls: [{ index: 0 }] } }] }],
    ['a list of typed pieces', { choices: [{ delta: { content: [{ type: 'text', text: 'a' }] } }] }],
    ['log probabilities', { choices: [{ ...token.choices[0], logprobs: {} }] }],
    ['a whole message', { choices: [{ message: { content: 'a' } }] }],
    ['half a token', { choices: [], usage: { prompt_tokens: 0.5 } }],
    ['a text', 'a'],
    ['nothing', null],
  ])('leaves %s to the schema', (_, value) => {
    expect(isPlainChunk(value)).toBe(false);
  });

  it('accepts no chunk as plain that the schema would refuse or read differently', () => {
    let plain = 0;
    fc.assert(
      fc.property(chunk, (generated) => {
        const value = sent(generated);
        if (!isPlainChunk(value)) return;
        plain += 1;
        // The schema keeps the values and drops only fields that are not read.
        expect(value).toMatchObject(upstreamChunk.parse(value));
      }),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(100);
  });
});
