import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { sseReader } from '#shared/http/sse-reader.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { geminiChunk, isTextChunk } from './chunk.ts';
import { ChunkReader } from './to-parts.ts';

async function readFixture(name: string) {
  const bytes = await readFile(new URL(`./__fixtures__/${name}.sse`, import.meta.url));
  const sse = sseReader({ maxEventChars: 100_000 });
  const signatures: [string, string][] = [];
  const reader = new ChunkReader((...signature) => signatures.push(signature));
  const parts = [...reader.readEvents(sse.read(bytes)), ...reader.readEvents(sse.end())];
  return { reader, parts: contentAndEnd(parts), signatures };
}

function read(...chunks: readonly unknown[]) {
  const reader = new ChunkReader(() => {});
  const parts = reader.readEvents(chunks.map((chunk) => ({ event: null, data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) })));
  return { reader, parts: contentAndEnd(parts) };
}

const contentAndEnd = (parts: readonly ProviderPart[]) => parts.filter(({ type }) => type !== 'response-metadata' && type !== 'usage-so-far');
const chunk = (parts: readonly object[], finishReason?: string) => ({ candidates: [{ index: 0, content: { role: 'model', parts }, finishReason }] });
const text = (words: string) => chunk([{ text: words }]);

describe('a broken answer', () => {
  it('ends at what is not JSON, after what came before it', () => {
    const { reader, parts } = read(text('a'), '{"candidates":[', text('b'));
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('ends at an error in place of a chunk', () => {
    const { reader } = read(text('a'), { error: { code: 503, message: 'no', status: 'UNAVAILABLE' } });
    expect(reader.broken).toMatchObject({ error: { code: 503 } });
  });

  it.each([{ candidates: [{ content: { parts: [{ text: 7 }] } }] }, { candidates: [{ content: { parts: [{ functionCall: { args: {} } }] } }] }, [1]])(
    'ends at %o',
    (value) => {
      expect(read(text('a'), value).reader).toMatchObject({ broken: { name: 'ZodError' } });
    },
  );

  it.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'])('ends with %s', (reason) => {
    expect(read(text('a'), chunk([], reason)).reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
  });

  it('is one without content that ends for an unknown reason', () => {
    expect(read(chunk([], 'OTHER')).reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
  });

  it('is a prompt that is blocked', async () => {
    const { reader, parts } = await readFixture('blocked');
    expect(parts).toEqual([]);
    expect(reader.broken).toMatchObject({ error: { status: 'content_policy_violation' } });
  });
});

describe('an answer', () => {
  const block = { index: 0, id: null, format: 'google-gemini-v1' };

  it('has its texts, the signature of its text, and the last counts once', async () => {
    const { reader, parts } = await readFixture('text');
    expect(reader).toMatchObject({ broken: null, finished: true, hasUsage: true });
    expect(parts).toEqual([
      { type: 'text-delta', text: 'Hello' },
      { type: 'text-delta', text: ' world' },
      { type: 'reasoning-encrypted', data: 'c2lnLXRleHQ=', block },
      { type: 'finish', reason: 'stop', nativeReason: 'STOP' },
      { type: 'usage', usage: { promptTokens: 20, completionTokens: 10, cachedTokens: 16, reasoningTokens: 7 } },
    ]);
  });

  it('has thoughts, whole calls with ids of their own, and the signature of a call by its id', async () => {
    const { parts, signatures } = await readFixture('thoughts-and-calls');
    expect(parts).toEqual([
      { type: 'reasoning-delta', text: 'I need ', block },
      { type: 'reasoning-delta', text: 'both.', block },
      { type: 'text-delta', text: 'I look.' },
      { type: 'tool-call-start', index: 0, id: 'fc-1', name: 'get_weather' },
      { type: 'tool-call-delta', index: 0, arguments: '{"city":"Paris"}' },
      { type: 'reasoning-encrypted', data: 'c2lnLWNhbGw=', block: { ...block, index: 1, id: 'fc-1' } },
      { type: 'tool-call-start', index: 1, id: expect.stringMatching(/^call_\w{24}$/), name: 'get_time' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'STOP' },
      { type: 'usage', usage: { promptTokens: 24, completionTokens: 20, cachedTokens: 0, reasoningTokens: 11 } },
    ]);
    expect(signatures).toEqual([['fc-1', 'c2lnLWNhbGw=']]);
  });

  it('has pictures and sources', async () => {
    const { parts } = await readFixture('image-and-sources');
    expect(parts.slice(0, 4)).toEqual([
      { type: 'text-delta', text: 'Here: ' },
      { type: 'image', url: 'data:image/png;base64,aGk=' },
      { type: 'text-delta', text: 'Twice a day.' },
      { type: 'annotation', annotation: { type: 'url_citation', url_citation: { url: 'https://tides.test/a', title: 'Tides' } } },
    ]);
  });

  it('has log probabilities', () => {
    const token = { token: 'a', logProbability: -0.5 };
    const logprobsResult = { chosenCandidates: [token], topCandidates: [{ candidates: [token] }] };
    const { parts } = read({ candidates: [{ content: { parts: [{ text: 'a' }] }, logprobsResult }] });
    const expected = { token: 'a', logprob: -0.5, bytes: null };
    expect(parts).toEqual([{ type: 'text-delta', text: 'a', logprobs: { content: [{ ...expected, top_logprobs: [expected] }], refusal: null } }]);
  });

  it.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['OTHER', 'stop'],
    ['SOMETHING_NEW', 'stop'],
  ])('that ends with %s ends with %s', (native, reason) => {
    expect(read(text('a'), chunk([], native)).parts.at(-1)).toEqual({ type: 'finish', reason, nativeReason: native });
  });

  it('is read from a list of chunks, as the API has it without events', () => {
    const reader = new ChunkReader(() => {});
    const parts = reader.readWhole(JSON.stringify([text('a'), chunk([{ text: 'b' }], 'STOP')]));
    expect(contentAndEnd(parts).map(({ type }) => type)).toEqual(['text-delta', 'text-delta', 'finish']);
    expect(reader).toMatchObject({ finished: true, ended: true });
  });

  it('has the numbers of calls as they are written, in an event, in a whole body and in a list', () => {
    const counts = '"usageMetadata":{"promptTokenCount":1.0},"avgLogprobs":-0.12345678901234567';
    const called = `{"args":{"id":1.0},"candidates":[{"index":0,"finishReason":"STOP","content":{"parts":[{"functionCall":{"name":"look","args":${ODD_NUMBERS}}}]}}],${counts}}`;
    const whole = (body: string) => new ChunkReader(() => {}).readWhole(body);
    for (const parts of [read(called).parts, whole(called), whole(`[${JSON.stringify(text('a'))},${called}]`)]) {
      expect(parts.filter(({ type }) => type === 'tool-call-delta')).toEqual([{ type: 'tool-call-delta', index: 0, arguments: ODD_NUMBERS }]);
      expect(parts.at(-1)).toMatchObject({ type: 'usage', usage: { promptTokens: 1 } });
    }
  });

  it('is read alike by the quick check and by the schema', () => {
    expect(isTextChunk(text('a'))).toBe(true);
    const sent: unknown = JSON.parse(JSON.stringify(text('a')));
    expect(sent).toMatchObject(geminiChunk.parse(sent));
    for (const odd of [
      chunk([{ text: 'a', thought: true }]),
      chunk([{ text: 'a', thoughtSignature: 's' }]),
      chunk([{ text: 'a' }], 'STOP'),
      chunk([{ text: 'a' }, { text: 'b' }]),
      { candidates: [{ ...text('a').candidates[0], index: 1 }] },
      { ...text('a'), error: {} },
    ]) {
      expect(isTextChunk(odd)).toBe(false);
    }
  });
});
