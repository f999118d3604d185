import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { sseReader } from '#shared/http/sse-reader.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { PartReader } from './to-parts.ts';

async function partsOf(fixture: string): Promise<ProviderPart[]> {
  const bytes = await readFile(new URL(`./__fixtures__/${fixture}.sse`, import.meta.url));
  const sse = sseReader({ maxEventChars: 100_000 });
  const reader = new PartReader();
  const parts = [...reader.readEvents(sse.read(bytes)), ...reader.readEvents(sse.end())];
  expect(reader).toMatchObject({ broken: null, finished: true });
  return parts;
}

function read(...chunks: unknown[]): { reader: PartReader; parts: ProviderPart[] } {
  const reader = new PartReader();
  const parts = reader.readEvents(chunks.map((chunk) => ({ event: null, data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) })));
  return { reader, parts };
}

const saying = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
const calling = (...toolCalls: unknown[]) => ({ choices: [{ index: 0, delta: { tool_calls: toolCalls } }] });
const finishing = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });

describe('a broken answer', () => {
  it('ends at what is not JSON, after what came before it', () => {
    const { reader, parts } = read(saying('a'), '{"choices":[{"del', saying('b'));
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('ends at an error in place of a chunk', () => {
    const { reader } = read({ error: { message: 'no', code: '503' } });
    expect(reader.broken).toMatchObject({ error: { message: 'no', code: '503' } });
    expect(reader.broken).toBeInstanceOf(ErrorEvent);
  });

  it.each(['error', 'insufficient_system_resource'])('reads the finish reason "%s" as an error', (reason) => {
    expect(read(saying('a'), finishing(reason)).reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
  });

  it('refuses tool calls without end', () => {
    const calls = Array.from({ length: 513 }, (_, index) => ({ index, id: `c${index}`, function: { name: 'f', arguments: '{}' } }));
    expect(read(calling(...calls)).reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('refuses arguments without end for a call without a name', () => {
    expect(read(calling({ index: 0, id: 'a', function: { arguments: 'x'.repeat(1024 * 1024 + 1) } })).reader.broken).toBeInstanceOf(SyntaxError);
  });

  it.each([null, '', {}])('ignores error: %o in a healthy chunk', (error) => {
    expect(read({ ...saying('a'), error })).toMatchObject({ reader: { broken: null }, parts: [{ text: 'a' }] });
  });

  it('ignores unreadable usage', () => {
    expect(read({ ...finishing('stop'), usage: { prompt_tokens: 'many' } })).toMatchObject({ reader: { broken: null, hasUsage: false, finished: true } });
  });
});

describe('the dialects of upstreams', () => {
  it('reads OpenAI: text, logprobs, finish, and usage in a separate chunk', async () => {
    expect(await partsOf('openai-text')).toEqual([
      {
        type: 'text-delta',
        text: 'Hello',
        logprobs: {
          content: [
            {
              token: 'Hello',
              logprob: -0.25,
              bytes: [72, 101, 108, 108, 111],
              top_logprobs: [{ token: 'Hello', logprob: -0.25, bytes: [72, 101, 108, 108, 111] }],
            },
          ],
          refusal: null,
        },
      },
      { type: 'text-delta', text: ' world' },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
      { type: 'usage', usage: { promptTokens: 19, completionTokens: 10, cachedTokens: 8, reasoningTokens: 4 } },
    ]);
  });

  it('reads OpenAI’s parallel tool calls, the one without arguments with an empty object', async () => {
    expect(await partsOf('openai-tool-calls')).toEqual([
      { type: 'tool-call-start', index: 0, id: 'call_A', name: 'get_weather' },
      { type: 'tool-call-delta', index: 0, arguments: '{"city":' },
      { type: 'tool-call-delta', index: 0, arguments: '"Paris"}' },
      { type: 'tool-call-start', index: 1, id: 'call_B', name: 'get_time' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_calls' },
    ]);
  });

  it('skips Azure’s first chunk, which has no choices', async () => {
    expect(await partsOf('azure-first-chunk')).toEqual([
      { type: 'text-delta', text: 'Yes' },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
    ]);
  });

  it('reads DeepSeek: reasoning_content, and usage on the last choice', async () => {
    expect(await partsOf('deepseek-reasoning')).toEqual([
      { type: 'reasoning-delta', text: 'Two' },
      { type: 'reasoning-delta', text: ' words' },
      { type: 'text-delta', text: 'Hi' },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
      { type: 'usage', usage: { promptTokens: 9, completionTokens: 6, cachedTokens: 5, reasoningTokens: 4 } },
    ]);
  });

  it('reads Groq: usage under x_groq', async () => {
    expect((await partsOf('groq-usage')).at(-1)).toEqual({
      type: 'usage',
      usage: { promptTokens: 7, completionTokens: 2, cachedTokens: 0, reasoningTokens: 0 },
    });
  });

  it('reads Mistral: content in typed pieces, tool calls whole and without index', async () => {
    expect((await partsOf('mistral-whole-tool-calls')).slice(0, 5)).toEqual([
      { type: 'text-delta', text: 'Looking' },
      { type: 'tool-call-start', index: 0, id: 'aaaaaaaaa', name: 'look' },
      { type: 'tool-call-delta', index: 0, arguments: '{"at": 1}' },
      { type: 'tool-call-start', index: 1, id: 'bbbbbbbbb', name: 'look' },
      { type: 'tool-call-delta', index: 1, arguments: '{"at":2}' },
    ]);
  });

  it('distinguishes parallel calls that all have index 0', async () => {
    expect((await partsOf('gemini-same-index')).slice(0, 5)).toEqual([
      { type: 'tool-call-start', index: 0, id: 'one', name: 'look' },
      { type: 'tool-call-delta', index: 0, arguments: '{"at":1}' },
      { type: 'tool-call-start', index: 1, id: 'two', name: 'look' },
      { type: 'tool-call-delta', index: 1, arguments: '{"at":2}' },
      { type: 'finish', reason: 'stop', nativeReason: 'STOP' },
    ]);
  });

  it('reads the old function_call as a tool call, with a generated id', async () => {
    expect(await partsOf('legacy-function-call')).toEqual([
      { type: 'tool-call-start', index: 0, id: expect.stringMatching(/^call_[A-Za-z0-9]{24}$/), name: 'look' },
      { type: 'tool-call-delta', index: 0, arguments: '{"at":1}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'function_call' },
    ]);
  });

  it('holds back arguments until the call has a name', () => {
    const { parts } = read(calling({ index: 0, id: 'a', function: { arguments: '{"x"' } }), calling({ index: 0, function: { name: 'f', arguments: ':1}' } }));
    expect(parts).toEqual([
      { type: 'tool-call-start', index: 0, id: 'a', name: 'f' },
      { type: 'tool-call-delta', index: 0, arguments: '{"x":1}' },
    ]);
  });

  it('goes on with the same call when a vendor repeats its id and name in every fragment', () => {
    const fragment = (text: string) => calling({ index: 0, id: 'a', function: { name: 'f', arguments: text } });
    expect(read(fragment('{"x"'), fragment(':1}')).parts.map(({ type }) => type)).toEqual(['tool-call-start', 'tool-call-delta', 'tool-call-delta']);
  });

  it.each([
    ['eos', 'stop'],
    ['end_turn', 'stop'],
    ['COMPLETE', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['model_length', 'length'],
    ['tool_use', 'tool_calls'],
    ['SAFETY', 'content_filter'],
  ])('takes the finish reason "%s" for %s', (native, reason) => {
    expect(read(finishing(native)).parts).toEqual([{ type: 'finish', reason, nativeReason: native }]);
  });

  it('reads only the first of several choices', () => {
    const second = { index: 1, delta: { content: 'b' }, finish_reason: 'stop' };
    expect(read({ choices: [second, { index: 0, delta: { content: 'a' } }] }, { choices: [second] }).parts).toEqual([{ type: 'text-delta', text: 'a' }]);
  });
});
