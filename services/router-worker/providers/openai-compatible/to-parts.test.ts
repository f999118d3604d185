import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { sseReader } from '#shared/http/sse-reader.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { PartReader } from './to-parts.ts';

async function partsOf(fixture: string): Promise<ProviderPart[]> {
  const bytes = await readFile(new URL(`./__fixtures__/${fixture}.sse`, import.meta.url));
  const sse = sseReader({ maxEventChars: 100_000 });
  const reader = new PartReader();
  const parts = [...reader.readEvents(sse.read(bytes)), ...reader.readEvents(sse.end()), ...reader.lastParts()];
  expect(reader).toMatchObject({ broken: null, finished: true });
  return parts.filter(({ type }) => type !== 'response-metadata');
}

function read(...chunks: unknown[]): { reader: PartReader; parts: ProviderPart[] } {
  const reader = new PartReader();
  const parts = reader.readEvents(chunks.map((chunk) => ({ event: null, data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) })));
  return { reader, parts };
}

const deltas = (...all: unknown[]) => all.map((delta) => ({ choices: [{ index: 0, delta }] }));
const saying = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
const calling = (...toolCalls: unknown[]) => ({ choices: [{ index: 0, delta: { tool_calls: toolCalls } }] });
const finishing = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });

const GENERATED: unknown = expect.stringMatching(/^call_[A-Za-z0-9]{24}$/);

/** Id, name and arguments, by our index. */
function callsIn(parts: readonly ProviderPart[]): (readonly [id: string, name: string, text: string])[] {
  return parts.flatMap((part) => {
    if (part.type !== 'tool-call-start') return [];
    const pieces = parts.map((delta) => (delta.type === 'tool-call-delta' && delta.index === part.index ? delta.arguments : ''));
    return [[part.id, part.name, pieces.join('')] as const];
  });
}

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

  it.each([
    ['{"message":"boom","code":429}', { message: 'boom', code: 429 }],
    ['{"error":{"message":"boom"}}', { message: 'boom' }],
    ['boom', 'boom'],
  ])('ends at an event that is named an error, of which %s says what it is', (data, error) => {
    const reader = new PartReader();
    const parts = reader.readEvents([
      { event: null, data: JSON.stringify(saying('a')) },
      { event: 'error', data },
    ]);
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(reader.broken).toMatchObject({ name: 'ErrorEvent', error });
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

describe('what upstreams say of a whole answer', () => {
  const named = { id: 'chatcmpl-1', system_fingerprint: 'fp_1', service_tier: 'auto' };
  const metadata = { type: 'response-metadata', id: 'chatcmpl-1', systemFingerprint: 'fp_1', serviceTier: 'auto' };

  it('is read from the first chunk with a choice, and once', () => {
    expect(read({ choices: [], id: '' }, { ...named, ...saying('a') }, { ...named, ...saying('b') }, { ...named, ...finishing('stop') }).parts).toEqual([
      metadata,
      { type: 'text-delta', text: 'a' },
      { type: 'text-delta', text: 'b' },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
    ]);
  });

  it('is read again at the end, where some know the tier', () => {
    const { parts } = read({ ...named, ...saying('a') }, { ...named, service_tier: 'flex', ...finishing('stop') });
    expect(parts.filter(({ type }) => type === 'response-metadata')).toEqual([metadata, { ...metadata, serviceTier: 'flex' }]);
  });

  it('is nothing where it is null, empty or no text', () => {
    expect(read({ id: 7, system_fingerprint: null, service_tier: '', ...saying('a') }).parts).toEqual([{ type: 'text-delta', text: 'a' }]);
  });

  it('does not keep the answer from being read when it is strange', () => {
    expect(read({ id: {}, ...calling({ index: 0, id: 'a', function: { name: 'f' } }) }).reader.broken).toBeNull();
  });
});

describe('what a delta has beside text', () => {
  const block = { index: 0, id: null, format: 'anthropic-claude-v1' };
  const detail = (fields: object) => ({ index: 0, format: 'anthropic-claude-v1', ...fields });

  it('is reasoning in details, whose text is read once, with its signature', () => {
    const { parts, reader } = read(
      ...deltas(
        { reasoning: 'hm', reasoning_details: [detail({ type: 'reasoning.text', text: 'hm' })] },
        { content: '', reasoning_details: [detail({ type: 'reasoning.text', signature: 'sig' })] },
        { reasoning_details: [detail({ type: 'reasoning.encrypted', data: 'xyz', index: 1 })] },
        { reasoning: 'short', reasoning_details: [{ type: 'reasoning.summary', summary: 'short', id: 'rs_1', index: 2 }] },
      ),
    );
    expect(parts).toEqual([
      { type: 'reasoning-delta', text: 'hm', block },
      { type: 'reasoning-signature', signature: 'sig', block },
      { type: 'reasoning-encrypted', data: 'xyz', block: { ...block, index: 1 } },
      { type: 'reasoning-summary-delta', text: 'short', block: { index: 2, id: 'rs_1', format: 'unknown' } },
    ]);
    expect(reader.hasContent).toBe(true);
  });

  it('gives the deltas of one block one object', () => {
    const { parts } = read(...deltas(...['a', 'b'].map((text) => ({ reasoning_details: [detail({ type: 'reasoning.text', text })] }))));
    const blocks = new Set(parts.map((part) => ('block' in part ? part.block : null)));
    expect(parts).toHaveLength(2);
    expect(blocks.size).toBe(1);
  });

  it('keeps reasoning beside details that hold none of its text', () => {
    const { parts } = read(...deltas({ reasoning: 'hm', reasoning_details: [detail({ type: 'reasoning.encrypted', data: 'xyz' })] }));
    expect(parts.map(({ type }) => type)).toEqual(['reasoning-encrypted', 'reasoning-delta']);
  });

  it('is sources, images and sound', () => {
    const cited = { url: 'https://a.test', title: 'A', start_index: 0, end_index: 2 };
    const { parts } = read(
      ...deltas(
        {
          content: 'So.',
          annotations: [
            { type: 'url_citation', url_citation: cited },
            { type: 'url_citation', url_citation: { url: 'https://b.test' } },
          ],
        },
        { images: [{ type: 'image_url', index: 0, image_url: { url: 'data:image/png;base64,AAAA' } }] },
        { audio: { id: 'audio_1', transcript: 'Yes' } },
        { audio: { data: 'AAAA' } },
        { audio: { expires_at: 1_700_000_000 } },
      ),
    );
    expect(parts).toEqual([
      { type: 'text-delta', text: 'So.' },
      { type: 'annotation', annotation: { type: 'url_citation', url_citation: cited } },
      { type: 'annotation', annotation: { type: 'url_citation', url_citation: { url: 'https://b.test', title: 'https://b.test' } } },
      { type: 'image', url: 'data:image/png;base64,AAAA' },
      { type: 'audio-delta', id: 'audio_1', data: null, transcript: 'Yes' },
      { type: 'audio-delta', id: 'audio_1', data: 'AAAA', transcript: null },
      { type: 'audio-delta', id: 'audio_1', data: null, transcript: null, expiresAt: 1_700_000_000 },
    ]);
  });

  it('is skipped, item by item, where its form is not known', () => {
    const odd = {
      reasoning_details: [{ type: 'reasoning.dance' }, 1, detail({ type: 'reasoning.text', text: 'hm', index: 'first' })],
      annotations: {},
      images: [null],
    };
    expect(read(...deltas({ ...odd, audio: 'loud', content: 'a' })).parts).toEqual([
      { type: 'reasoning-delta', text: 'hm', block },
      { type: 'text-delta', text: 'a' },
    ]);
  });

  it('has the log probabilities of refusals, and of tokens that are a part of a character, with the next text', () => {
    const token = (name: string) => ({ token: name, logprob: -1, bytes: [240], top_logprobs: [] });
    const chunk = (delta: object, logprobs: object) => ({ choices: [{ index: 0, delta, logprobs }] });
    const { parts } = read(
      chunk({ content: '' }, { content: [token('a')], refusal: null }),
      chunk({ content: '🙂' }, { content: [token('b')], refusal: null }),
      chunk({ refusal: 'No' }, { content: null, refusal: [token('c')] }),
    );
    expect(parts).toEqual([
      { type: 'text-delta', text: '🙂', logprobs: { content: [token('a'), token('b')], refusal: null } },
      { type: 'refusal-delta', text: 'No', logprobs: { content: null, refusal: [token('c')] } },
    ]);
  });

  it('has every count of the usage that the upstream reports, and no other', () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 8,
      prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2, audio_tokens: 3, video_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 2, image_tokens: 3, accepted_prediction_tokens: 4, rejected_prediction_tokens: null },
    };
    expect(read({ choices: [], usage }).parts).toEqual([
      {
        type: 'usage',
        usage: {
          promptTokens: 9,
          completionTokens: 8,
          cachedTokens: 1,
          cacheWriteTokens: 2,
          promptAudioTokens: 3,
          promptVideoTokens: 4,
          reasoningTokens: 1,
          completionAudioTokens: 2,
          completionImageTokens: 3,
          acceptedPredictionTokens: 4,
        },
      },
    ]);
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
      {
        type: 'usage',
        usage: {
          promptTokens: 19,
          completionTokens: 10,
          cachedTokens: 8,
          promptAudioTokens: 0,
          reasoningTokens: 4,
          completionAudioTokens: 0,
          acceptedPredictionTokens: 0,
          rejectedPredictionTokens: 0,
        },
      },
    ]);
  });

  it('reads OpenAI’s parallel tool calls, the one without arguments with an empty object', async () => {
    expect(await partsOf('openai-tool-calls')).toEqual([
      { type: 'tool-call-start', index: 0, id: 'call_A', name: 'get_weather' },
      { type: 'tool-call-delta', index: 0, arguments: '{"city":' },
      { type: 'tool-call-delta', index: 0, arguments: '"Paris"}' },
      { type: 'tool-call-start', index: 1, id: 'call_B', name: 'get_time' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_calls' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
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

  it.each(['delta', 'message'])('reads arguments that are an object with their numbers as they are written (%s)', (choice) => {
    const call = `{"id":"a","function":{"name":"look","arguments":${ODD_NUMBERS}}}`;
    const { parts } = read(`{"choices":[{"index":0.0,"${choice}":{"tool_calls":[${call}]}}],"usage":{"prompt_tokens":5.0,"completion_tokens":5}}`);
    expect(callsIn(parts)).toEqual([['a', 'look', ODD_NUMBERS]]);
    expect(parts.at(-1)).toMatchObject({ usage: { promptTokens: 5 } });
  });

  it.each(['1.0', '12345678901234567890', '[1.0]'])('refuses arguments that are neither a text nor an object: %s', (given) => {
    const call = `{"index":0,"id":"a","function":{"name":"look","arguments":${given}}}`;
    const { parts, reader } = read(`{"choices":[{"index":0,"delta":{"tool_calls":[${call}]}}]}`);
    expect([parts, reader.broken]).toEqual([[], expect.any(ZodError)]);
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

  it('keeps arguments that come behind the finish reason, and adds none to them', () => {
    const { reader, parts } = read(
      { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] }, finish_reason: 'tool_calls' }] },
      calling({ index: 0, function: { arguments: '{"a":1}' } }),
    );
    expect([...parts, ...reader.lastParts()]).toEqual([
      { type: 'tool-call-start', index: 0, id: 'a', name: 'f' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_calls' },
      { type: 'tool-call-delta', index: 0, arguments: '{"a":1}' },
    ]);
  });

  it('goes on with the same call when a vendor repeats its id and name in every fragment', () => {
    const fragment = (text: string) => calling({ index: 0, id: 'a', function: { name: 'f', arguments: text } });
    expect(read(fragment('{"x"'), fragment(':1}')).parts.map(({ type }) => type)).toEqual(['tool-call-start', 'tool-call-delta', 'tool-call-delta']);
  });

  const fn = (name: string, text: string) => ({ name, arguments: text });

  it.each<[string, unknown[], (readonly [id: unknown, name: string, text: string])[]]>([
    [
      'one id for all calls, each under its index',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a":1}') },
        { index: 1, id: 'c1', function: fn('g', '{"b":2}') },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        [GENERATED, 'g', '{"b":2}'],
      ],
    ],
    [
      'one id for two calls of one function, whose pieces come in turn',
      [
        { index: 0, id: 'null', function: fn('f', '{"a"') },
        { index: 1, id: 'null', function: fn('f', '{"b"') },
        { index: 0, id: 'null', function: { arguments: ':1}' } },
        { index: 1, function: { arguments: ':2}' } },
      ],
      [
        ['null', 'f', '{"a":1}'],
        [GENERATED, 'f', '{"b":2}'],
      ],
    ],
    [
      'one id and one index for calls of two functions',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a":1}') },
        { index: 0, id: 'c1', function: fn('g', '{"b":') },
        { index: 0, function: { arguments: '2}' } },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        [GENERATED, 'g', '{"b":2}'],
      ],
    ],
    [
      'one index and no ids for calls of two functions',
      [
        { index: 0, function: fn('f', '{"a":1}') },
        { index: 0, function: fn('g', '{"b":') },
        { index: 0, function: { arguments: '2}' } },
      ],
      [
        [GENERATED, 'f', '{"a":1}'],
        [GENERATED, 'g', '{"b":2}'],
      ],
    ],
    [
      'one index for all calls, whose pieces come in turn with their ids',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a"') },
        { index: 0, id: 'c2', function: fn('f', '{"b"') },
        { index: 0, id: 'c1', function: { arguments: ':1}' } },
        { index: 0, id: 'c2', function: { arguments: ':2}' } },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        ['c2', 'f', '{"b":2}'],
      ],
    ],
    [
      'no index, and the id with each piece',
      [
        { id: 'c1', function: fn('f', '{"a"') },
        { id: 'c2', function: fn('f', '{"b"') },
        { id: 'c1', function: fn('f', ':1}') },
        { id: 'c2', function: { arguments: ':2}' } },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        ['c2', 'f', '{"b":2}'],
      ],
    ],
    [
      'an index that counts pieces, with their id',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a"') },
        { index: 1, id: 'c1', function: { arguments: ':1}' } },
      ],
      [['c1', 'f', '{"a":1}']],
    ],
    [
      'the id before the name, under another index',
      [
        { index: 0, id: 'c1', function: { arguments: '{"a"' } },
        { index: 1, id: 'c1', function: fn('f', ':1}') },
      ],
      [['c1', 'f', '{"a":1}']],
    ],
    [
      'an index that counts pieces, with their id and name',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a":') },
        { index: 1, id: 'c1', function: fn('f', '{"b":"}{') },
        { index: 2, id: 'c1', function: fn('f', '"}}') },
      ],
      [['c1', 'f', '{"a":{"b":"}{"}}']],
    ],
    [
      'an index that counts pieces, with their id and name, the first without arguments',
      [
        { index: 0, id: 'c1', function: fn('f', '') },
        { index: 1, id: 'c1', function: fn('f', '{"a"') },
        { index: 2, id: 'c1', function: fn('f', ':1}') },
      ],
      [['c1', 'f', '{"a":1}']],
    ],
    [
      'one id for two calls of one function, each whole under its index',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a":"\\"{"}') },
        { index: 1, id: 'c1', function: fn('f', '{"b":2}') },
      ],
      [
        ['c1', 'f', '{"a":"\\"{"}'],
        [GENERATED, 'f', '{"b":2}'],
      ],
    ],
    [
      'one id for two calls of one function under their indexes, whose arguments come later',
      [
        { index: 0, id: 'c1', function: fn('f', '') },
        { index: 1, id: 'c1', function: fn('f', '') },
        { index: 0, function: { arguments: '{"a":1}' } },
        { index: 1, function: { arguments: '{"b":2}' } },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        [GENERATED, 'f', '{"b":2}'],
      ],
    ],
    [
      'one id for two calls of one function under their indexes, one after the other, each named first',
      [
        { index: 0, id: 'c1', function: fn('f', '') },
        { index: 0, function: { arguments: '{"a":1}' } },
        { index: 1, id: 'c1', function: fn('f', '') },
        { index: 1, function: { arguments: '{"b":2}' } },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        [GENERATED, 'f', '{"b":2}'],
      ],
    ],
    [
      'arguments before a name, under the id of another call',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a":1}') },
        { index: 1, function: { arguments: '{"b"' } },
        { index: 1, id: 'c1', function: fn('f', ':2}') },
      ],
      [
        ['c1', 'f', '{"a":1}'],
        [GENERATED, 'f', '{"b":2}'],
      ],
    ],
    [
      'a name in pieces',
      [
        { index: 0, id: 'c1', function: { name: 'get_' } },
        { index: 0, function: fn('weather', '') },
        { index: 0, function: { arguments: '{"a":1}' } },
      ],
      [['c1', 'get_', '{"a":1}']],
    ],
    [
      'a name that grows, with the id',
      [
        { index: 0, id: 'c1', function: fn('get', '') },
        { index: 0, id: 'c1', function: fn('get_weather', '{"a":1}') },
      ],
      [['c1', 'get', '{"a":1}']],
    ],
    ...([{ index: 0 }, { index: 0, id: 'c1' }, { id: 'c1' }].map((named) => [
      `only ${JSON.stringify(named)} for two calls of one function, each whole`,
      [
        { ...named, function: fn('f', '{"a":1}') },
        { ...named, function: fn('f', '{"a":2}') },
      ],
      [
        ['id' in named ? 'c1' : GENERATED, 'f', '{"a":1}'],
        [GENERATED, 'f', '{"a":2}'],
      ],
    ]) satisfies [string, unknown[], [unknown, string, string][]][]),
    [
      'one index and no ids for two calls of one function, whose arguments come behind the name',
      [
        { index: 0, function: fn('f', '') },
        { index: 0, function: { arguments: '{"a":1}' } },
        { index: 0, function: fn('f', '') },
        { index: 0, function: { arguments: '{"a"' } },
        { index: 0, function: { arguments: ':2}' } },
      ],
      [
        [GENERATED, 'f', '{"a":1}'],
        [GENERATED, 'f', '{"a":2}'],
      ],
    ],
    [
      'the id and the name with each piece, the last without arguments',
      [
        { index: 0, id: 'c1', function: fn('f', '{"a"') },
        { index: 0, id: 'c1', function: fn('f', ':1}') },
        { index: 0, id: 'c1', function: fn('f', '') },
      ],
      [['c1', 'f', '{"a":1}']],
    ],
  ])('DESIGN 8: tells calls of tools apart that have %s', (_, fragments, expected) => {
    for (const chunks of [fragments.map((fragment) => calling(fragment)), [calling(...fragments)]]) {
      const calls = callsIn(read(...chunks).parts);
      expect(calls).toEqual(expected);
      expect(new Set(calls.map(([id]) => id)).size).toBe(calls.length);
    }
  });

  it.each<[string, unknown[], string[]]>([
    ['{"a":1}', [fn('f', '{"a":1}'), fn('f', '{"b":2}')], ['{"a":1}', '{"b":2}']],
    ['nothing', [fn('f', ''), fn('f', '{"b":2}')], ['{}', '{"b":2}']],
    ['the start of an object', [fn('f', '{"a":'), fn('f', '{"b":2}')], ['{"a":', '{"b":2}']],
  ])('DESIGN 8: takes each tool call of a whole answer for one, whatever their ids: the first has %s', (_, functions, expected) => {
    for (const id of ['c1', undefined]) {
      const reader = new PartReader();
      const body = { choices: [{ index: 0, message: { tool_calls: functions.map((called) => ({ id, function: called })) }, finish_reason: 'tool_calls' }] };
      const calls = callsIn([...reader.readWhole(JSON.stringify(body)), ...reader.lastParts()]);
      expect(calls.map(([, , text]) => text)).toEqual(expected);
      expect(calls[0]?.[0]).toEqual(id ?? GENERATED);
      expect(new Set(calls.map(([ofCall]) => ofCall)).size).toBe(2);
    }
  });

  it('reads a call once that comes in both forms', () => {
    const called = fn('f', '{"a":1}');
    const { parts } = read({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'a', function: called }], function_call: called } }] });
    expect(callsIn(parts)).toEqual([['a', 'f', '{"a":1}']]);
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
