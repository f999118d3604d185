import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { sseReader } from '#shared/http/sse-reader.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { isTextDelta, readEvent } from './event.ts';
import { MessageReader } from './to-parts.ts';

async function readFixture(name: string): Promise<{ reader: MessageReader; parts: ProviderPart[] }> {
  const bytes = await readFile(new URL(`./__fixtures__/${name}.sse`, import.meta.url));
  const sse = sseReader({ maxEventChars: 100_000 });
  const reader = new MessageReader(null);
  const [first, soFar, ...parts] = [...reader.readEvents(sse.read(bytes)), ...reader.readEvents(sse.end())];
  expect(first).toEqual({ type: 'response-metadata', id: 'msg_01A', systemFingerprint: null, serviceTier: 'standard' });
  expect(soFar).toEqual({ type: 'usage-so-far', read: expect.any(Function) });
  return { reader, parts };
}

function read(events: readonly unknown[], answerTool: string | null = null): { reader: MessageReader; parts: ProviderPart[] } {
  const reader = new MessageReader(answerTool);
  const parts = reader.readEvents(events.map((event) => ({ event: null, data: typeof event === 'string' ? event : JSON.stringify(event) })));
  return { reader, parts };
}

const text = (words: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } });
const start = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block });
const args = (index: number, piece: string) => ({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: piece } });
const stop = (index: number) => ({ type: 'content_block_stop', index });
const end = (reason: string, usage: object | null = { output_tokens: 5 }) => ({ type: 'message_delta', delta: { stop_reason: reason }, usage });
const call = (index: number, name: string) => start(index, { type: 'tool_use', id: `toolu_${index}`, name, input: {} });

describe('a broken answer', () => {
  it('ends at what is not JSON, after what came before it', () => {
    const { reader, parts } = read([text('a'), '{"type":"content_block_del', text('b')]);
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('ends at an error after some text', async () => {
    const { reader, parts } = await readFixture('overloaded');
    expect(parts).toEqual([{ type: 'text-delta', text: 'Hel' }]);
    expect(reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
    expect(reader.broken).toMatchObject({ error: { type: 'overloaded_error', message: 'Overloaded' } });
  });

  it.each([
    ['a tool call without an id', start(0, { type: 'tool_use', name: 'look', input: {} })],
    ['a delta that is no text', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 7 } }],
    ['a block without a number', { type: 'content_block_stop' }],
    ['a value that is no event', [1]],
  ])('ends at %s', (_, event) => {
    expect(read([text('a'), event]).reader).toMatchObject({ broken: { name: 'ZodError' } });
  });

  it('refuses blocks without end', () => {
    expect(read(Array.from({ length: 2_049 }, (_, index) => call(index, 'look'))).reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('refuses arguments without end of a tool that the upstream runs', () => {
    const search = start(0, { type: 'server_tool_use', id: 'srv', name: 'web_search', input: {} });
    expect(read([search, args(0, 'x'.repeat(1024 * 1024 + 1))]).reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('is no answer when a whole body is an error', () => {
    const reader = new MessageReader(null);
    expect(reader.readWhole(JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'no' } }))).toEqual([]);
    expect(reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
  });
});

describe('an answer', () => {
  it('has its texts, and counts that are taken once', async () => {
    const { reader, parts } = await readFixture('text');
    expect(reader).toMatchObject({ broken: null, finished: true, ended: true, hasUsage: true });
    expect(parts).toEqual([
      { type: 'text-delta', text: 'Hello' },
      { type: 'text-delta', text: ' world' },
      { type: 'finish', reason: 'stop', nativeReason: 'end_turn' },
      { type: 'usage', usage: { promptTokens: 12, completionTokens: 5, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
    ]);
  });

  it('has thinking with signatures, calls numbered on their own, and a prompt that includes the cache', async () => {
    const { parts } = await readFixture('thinking-and-tools');
    const block = { index: 0, id: null, format: 'anthropic-claude-v1' };
    expect(parts).toEqual([
      { type: 'reasoning-delta', text: 'The user ', block },
      { type: 'reasoning-delta', text: 'wants both.', block },
      { type: 'reasoning-signature', signature: 'EqQBCgIYAh==', block },
      { type: 'reasoning-encrypted', data: 'EmwKAhgBEgy3va3pzix', block: { ...block, index: 1 } },
      { type: 'text-delta', text: 'I look.' },
      { type: 'tool-call-start', index: 0, id: 'toolu_01A', name: 'get_weather' },
      { type: 'tool-call-delta', index: 0, arguments: '{"city": "Pa' },
      { type: 'tool-call-delta', index: 0, arguments: 'ris"}' },
      { type: 'tool-call-start', index: 1, id: 'toolu_01B', name: 'get_time' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_use' },
      {
        type: 'usage',
        usage: { promptTokens: 1_120, completionTokens: 93, cachedTokens: 1_000, cacheWriteTokens: 100, cacheWrite1hTokens: 60, reasoningTokens: 60 },
      },
    ]);
  });

  it('has the searches that the upstream runs, and their sources', async () => {
    const { parts } = await readFixture('web-search');
    expect(parts.slice(0, 4)).toEqual([
      { type: 'server-tool-call', id: 'srvtoolu_01', name: 'web_search', arguments: '{"query": "tides"}' },
      { type: 'server-tool-result', id: 'srvtoolu_01', name: 'web_search', result: [expect.objectContaining({ url: 'https://tides.test/a' })] },
      { type: 'text-delta', text: 'Twice a day.' },
      {
        type: 'annotation',
        annotation: {
          type: 'url_citation',
          url_citation: { url: 'https://tides.test/a', title: 'Tides', content: 'Twice a day.', start_index: 0, end_index: 12 },
        },
      },
    ]);
  });

  it('has the words of a refusal', async () => {
    const { parts } = await readFixture('refusal');
    expect(parts.slice(0, 2)).toEqual([
      { type: 'refusal-delta', text: 'This request is against the usage policy.' },
      { type: 'finish', reason: 'content_filter', nativeReason: 'refusal' },
    ]);
  });

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
    ['something_new', 'stop'],
  ])('that ends with %s ends with %s', (native, reason) => {
    expect(read([end(native)]).parts[0]).toEqual({ type: 'finish', reason, nativeReason: native });
  });

  it('has arguments that came whole with the call, also when the block is never closed', () => {
    const whole = start(0, { type: 'tool_use', id: 'a', name: 'look', input: { at: 1 } });
    const { parts } = read([whole, end('tool_use')]);
    expect(parts[1]).toEqual({ type: 'tool-call-delta', index: 0, arguments: '{"at":1}' });
  });

  it('has the numbers of calls that came whole as they are written, in an event and in a whole body', () => {
    const block = (type: string) => `{"type":"${type}","id":"a","name":"look","input":${ODD_NUMBERS}}`;
    const streamed = (type: string) => read([`{"type":"content_block_start","index":0.0,"content_block":${block(type)}}`, stop(0)]).parts.at(-1);
    expect(streamed('tool_use')).toEqual({ type: 'tool-call-delta', index: 0, arguments: ODD_NUMBERS });
    expect(streamed('server_tool_use')).toEqual({ type: 'server-tool-call', id: 'a', name: 'look', arguments: ODD_NUMBERS });

    const result = '{"type":"code_result","tool_use_id":"b","content":[{"input":1.0}]}';
    const body = `{"type":"message","content":[${result},${block('tool_use')}],"stop_reason":"tool_use","usage":{"input_tokens":5.0,"output_tokens":5}}`;
    expect(new MessageReader(null).readWhole(body)).toMatchObject([
      { type: 'response-metadata' },
      { type: 'server-tool-result', id: 'b', result: [{ input: 1 }] },
      { type: 'tool-call-start' },
      { type: 'tool-call-delta', index: 0, arguments: ODD_NUMBERS },
      { type: 'finish' },
      { type: 'usage', usage: { promptTokens: 5 } },
    ]);
  });

  it('has as text the arguments of the tool that takes the answer', () => {
    const { parts } = read([call(0, 'json'), args(0, '{"a"'), args(0, ':1}'), stop(0), end('tool_use')], 'json');
    expect(parts.slice(0, 3)).toEqual([
      { type: 'text-delta', text: '{"a"' },
      { type: 'text-delta', text: ':1}' },
      { type: 'finish', reason: 'stop', nativeReason: 'tool_use' },
    ]);
    expect(read([call(0, 'look'), stop(0), end('tool_use')], 'json').parts.at(-2)).toMatchObject({ reason: 'tool_calls' });
  });

  it('has no usage when the counts of the answer are missing or unreadable', () => {
    const begun = { type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } };
    for (const usage of [null, {}, { output_tokens: 'many' }]) {
      expect(read([begun, end('end_turn', usage)])).toMatchObject({
        reader: { broken: null, hasUsage: false },
        parts: [{ type: 'response-metadata', id: null }, { type: 'usage-so-far' }, { type: 'finish' }],
      });
    }
  });

  it.each([
    ['no tokens of the prompt', { input_tokens: 0, output_tokens: 0 }, false],
    ['no count of the prompt', { output_tokens: 0 }, false],
    ['a prompt that is read from the cache as a whole', { input_tokens: 0, cache_read_input_tokens: 9, output_tokens: 0 }, true],
  ])('knows whether a start with %s has counted it', (_, usage, isCounted) => {
    const { parts } = read([{ type: 'message_start', message: { usage } }]);
    expect(parts.some(({ type }) => type === 'usage-so-far')).toBe(isCounted);
  });

  it('counts what is kept for an hour as part of what was written, by the end where it says it again', () => {
    const begun = (cache: object | null) => ({
      type: 'message_start',
      message: { usage: { input_tokens: 9, cache_creation_input_tokens: 50, cache_creation: cache } },
    });
    const usageOf = (...events: object[]) => read(events).parts.at(-1);
    const hour = (tokens: number) => ({ ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: tokens });
    expect(usageOf(begun(hour(30)), end('end_turn'))).toMatchObject({ usage: { cacheWriteTokens: 50, cacheWrite1hTokens: 30 } });
    expect(usageOf(begun(hour(30)), end('end_turn', { output_tokens: 5, cache_creation: hour(40) }))).toMatchObject({ usage: { cacheWrite1hTokens: 40 } });
    expect(usageOf(begun(hour(99)), end('end_turn'))).toMatchObject({ usage: { cacheWriteTokens: 50, cacheWrite1hTokens: 50 } });
    for (const none of [null, hour(0), { ephemeral_1h_input_tokens: 'many' }])
      expect(usageOf(begun(none), end('end_turn'))).not.toHaveProperty('usage.cacheWrite1hTokens');
  });

  it('is read past events, blocks and deltas that are not known', () => {
    const { reader, parts } = read([
      { type: 'ping' },
      { type: 'something_new', data: 1 },
      start(0, { type: 'hologram', beams: 3 }),
      { type: 'content_block_delta', index: 0, delta: { type: 'beam_delta', beam: 1 } },
      stop(0),
      text('a'),
    ]);
    expect({ broken: reader.broken, parts }).toEqual({ broken: null, parts: [{ type: 'text-delta', text: 'a' }] });
  });

  it('is read alike by the quick check and by the schema', () => {
    const event = text('a');
    expect(isTextDelta(event)).toBe(true);
    expect(readEvent(event)).toEqual(event);
    for (const odd of [
      { ...event, index: -1 },
      { ...event, index: 0.5 },
      { ...event, delta: { type: 'text_delta' } },
    ]) {
      expect(isTextDelta(odd)).toBe(false);
      expect(() => readEvent(odd)).toThrow();
    }
  });
});
