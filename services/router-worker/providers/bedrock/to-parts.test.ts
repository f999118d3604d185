import { readFileSync } from 'node:fs';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { ConverseReader } from './to-parts.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString(),
  (text) => Buffer.from(text),
);
const frame = (headers: Record<string, string>, body: string) =>
  Buffer.from(
    codec.encode({
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [`:${name}`, { type: 'string', value }])),
      body: Buffer.from(body),
    }),
  );
const event = (type: string, body: object) => frame({ 'message-type': 'event', 'event-type': type }, JSON.stringify(body));
const exception = (type: string, body: object) => frame({ 'message-type': 'exception', 'exception-type': type }, JSON.stringify(body));

function fixture(name: string): Buffer {
  const [, ...lines] = readFileSync(new URL(`./__fixtures__/${name}.frames`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');
  return Buffer.concat(
    lines.map((line) => {
      const at = line.indexOf(' ');
      const [type, body] = [line.slice(0, at), JSON.parse(line.slice(at + 1))];
      return type.startsWith('exception:') ? exception(type.slice('exception:'.length), body) : event(type, body);
    }),
  );
}

function read(frames: readonly Buffer[], { answerTool = null as string | null, signsReasoning = true } = {}) {
  const reader = new ConverseReader({ answerTool, signsReasoning });
  const parts: ProviderPart[] = frames.flatMap((bytes) => reader.readPiece(bytes));
  const { finished, ended, hasContent, hasUsage, broken } = reader;
  return { parts, finished, ended, hasContent, hasUsage, broken };
}

const delta = (text: string, contentBlockIndex = 0) => event('contentBlockDelta', { contentBlockIndex, delta: { text } });
const stop = (stopReason: string) => event('messageStop', { stopReason });
const call = (contentBlockIndex: number, name: string) =>
  event('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: `id_${name}`, name } } });
const input = (contentBlockIndex: number, text: string) => event('contentBlockDelta', { contentBlockIndex, delta: { toolUse: { input: text } } });

describe('the parts of an answer', () => {
  it('are its texts, its finish and its counts', () => {
    expect(read([fixture('text')])).toEqual({
      parts: [
        { type: 'text-delta', text: 'Grüße ' },
        { type: 'text-delta', text: 'aus 日本' },
        { type: 'finish', reason: 'stop', nativeReason: 'end_turn' },
        { type: 'response-metadata', id: null, systemFingerprint: null, serviceTier: 'flex' },
        { type: 'usage', usage: { promptTokens: 9, completionTokens: 7, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
      ],
      ...{ finished: true, ended: true, hasContent: true, hasUsage: true, broken: null },
    });
  });

  it('are signed and redacted reasoning by block, tool calls numbered from 0, and all counts of the cache', () => {
    const { parts } = read([fixture('thinking-and-tools')]);
    const [signed, redacted] = [0, 1].map((index) => ({ index, id: null, format: 'anthropic-claude-v1' }));
    expect(parts).toEqual([
      { type: 'reasoning-delta', text: 'let me ', block: signed },
      { type: 'reasoning-delta', text: 'see', block: signed },
      { type: 'reasoning-signature', signature: 'c2lnbmVk', block: signed },
      { type: 'reasoning-encrypted', data: Buffer.from('secrets').toString('base64'), block: redacted },
      { type: 'text-delta', text: 'I look.' },
      { type: 'tool-call-start', index: 0, id: 'tooluse_a', name: 'look' },
      { type: 'tool-call-delta', index: 0, arguments: '{"at":' },
      { type: 'tool-call-delta', index: 0, arguments: '1}' },
      { type: 'tool-call-start', index: 1, id: 'tooluse_b', name: 'listen' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_use' },
      {
        type: 'usage',
        usage: { promptTokens: 1_120, completionTokens: 70, cachedTokens: 1_000, cacheWriteTokens: 100, cacheWrite1hTokens: 60, reasoningTokens: 0 },
      },
    ]);
  });

  it('are the arguments of the tool that stands for a schema, as its text', () => {
    const { parts } = read([call(0, 'json'), input(0, '{"a"'), input(0, ':1}'), stop('tool_use')], { answerTool: 'json' });
    expect(parts).toEqual([
      { type: 'text-delta', text: '{"a"' },
      { type: 'text-delta', text: ':1}' },
      { type: 'finish', reason: 'stop', nativeReason: 'tool_use' },
    ]);
  });

  it('of a model that signs nothing have reasoning that no dialect takes back', () => {
    const { parts } = read([event('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'hm' } } })], { signsReasoning: false });
    expect(parts).toMatchObject([{ block: { format: 'unknown' } }]);
  });

  it('of events, blocks and deltas that are not known are none', () => {
    const unknown = [
      event('somethingNew', { a: 1 }),
      event('contentBlockStart', { contentBlockIndex: 0, start: { image: { format: 'png' } } }),
      event('contentBlockDelta', { contentBlockIndex: 0, delta: { citation: { title: 't' } } }),
    ];
    expect(read([...unknown, delta('a')])).toMatchObject({ parts: [{ type: 'text-delta', text: 'a' }], broken: null });
  });

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['something_new', 'stop'],
  ])('end for %s with %s', (nativeReason, reason) => {
    expect(read([delta('a'), stop(nativeReason)]).parts.at(-1)).toEqual({ type: 'finish', reason, nativeReason });
  });

  it('end with tool calls whatever the reason says of an answer that has some', () => {
    expect(read([call(0, 'look'), stop('end_turn')]).parts.at(-1)).toMatchObject({ reason: 'tool_calls' });
  });

  it.each(['malformed_model_output', 'malformed_tool_use'])('end in an error for %s', (reason) => {
    const { broken, finished, parts } = read([delta('a'), stop(reason)]);
    const ended = [
      { type: 'text-delta', text: 'a' },
      { type: 'finish', reason: 'error', nativeReason: reason },
    ];
    expect({ broken, finished, parts }).toEqual({ broken: expect.any(ErrorEvent), finished: false, parts: ended });
  });
});

describe('an answer breaks', () => {
  it('at an exception, behind the texts before it', () => {
    const { parts, broken, finished } = read([fixture('throttled')]);
    expect({ parts, finished }).toEqual({ parts: [{ type: 'text-delta', text: 'Hel' }], finished: false });
    expect(broken).toMatchObject({ error: { __type: 'throttlingException', message: 'Too many tokens, please wait before trying again.' } });
  });

  it('at an error frame', () => {
    const { broken } = read([frame({ 'message-type': 'error', 'error-code': 'InternalError', 'error-message': 'no' }, '')]);
    expect(broken).toMatchObject({ error: { __type: 'InternalError', message: 'no' } });
  });

  it.each([
    ['a frame without a known type', frame({ 'message-type': 'gossip' }, '{}')],
    ['a body that is no JSON', frame({ 'message-type': 'event', 'event-type': 'contentBlockDelta' }, '{"del')],
  ])('at %s', (_, bytes) => {
    expect(read([delta('a'), bytes])).toMatchObject({ parts: [{ text: 'a' }], broken: expect.any(SyntaxError), finished: false });
  });

  it('where its body ends within a frame', () => {
    const reader = new ConverseReader({ answerTool: null, signsReasoning: true });
    reader.readPiece(delta('a').subarray(0, -1));
    reader.readPiece(null);
    expect(reader).toMatchObject({ broken: expect.any(SyntaxError), finished: false, hasContent: false });
  });

  it('not where its body ends without a stop: that is for the caller to see', () => {
    expect(read([delta('a')])).toMatchObject({ broken: null, finished: false, ended: false });
  });
});

it('reads a whole answer', () => {
  const reader = new ConverseReader({ answerTool: null, signsReasoning: true });
  const content = [
    { reasoningContent: { reasoningText: { text: 'hm', signature: 's' } } },
    { reasoningContent: { redactedContent: 'c2VjcmV0' } },
    { text: 'Hello' },
    { toolUse: { toolUseId: 'a', name: 'look', input: { at: 1 } } },
  ];
  const usage = { inputTokens: 5, outputTokens: 5, totalTokens: 10 };
  const parts = reader.readWhole(JSON.stringify({ output: { message: { role: 'assistant', content } }, stopReason: 'tool_use', usage }));

  expect(parts).toMatchObject([
    { type: 'reasoning-delta', text: 'hm' },
    { type: 'reasoning-signature', signature: 's' },
    { type: 'reasoning-encrypted', data: 'c2VjcmV0' },
    { type: 'text-delta', text: 'Hello' },
    { type: 'tool-call-start', index: 0, id: 'a', name: 'look' },
    { type: 'tool-call-delta', index: 0, arguments: '{"at":1}' },
    { type: 'finish', reason: 'tool_calls' },
    { type: 'usage' },
  ]);
});

it('reads the numbers of calls in a whole answer as they are written', () => {
  for (const answerTool of [null, 'look']) {
    const reader = new ConverseReader({ answerTool, signsReasoning: true });
    const block = `{"toolUse":{"toolUseId":"a","name":"look","input":${ODD_NUMBERS}}}`;
    const parts = reader.readWhole(
      `{"output":{"message":{"content":[{"text":"1.0"},${block}]}},"stopReason":"tool_use","usage":{"inputTokens":5.0,"outputTokens":5}}`,
    );
    expect(reader.broken).toBeNull();
    expect(parts).toContainEqual(
      answerTool === null ? { type: 'tool-call-delta', index: 0, arguments: ODD_NUMBERS } : { type: 'text-delta', text: ODD_NUMBERS },
    );
  }
});

it('refuses redacted reasoning that is longer than may be retained', () => {
  const reader = new ConverseReader({ answerTool: null, signsReasoning: true });
  const content = [{ reasoningContent: { redactedContent: 'A'.repeat(1024 * 1024 + 4) } }];
  expect(reader.readWhole(JSON.stringify({ output: { message: { role: 'assistant', content } }, stopReason: 'end_turn' }))).toEqual([]);
  expect(reader.broken).toBeInstanceOf(SyntaxError);
});
