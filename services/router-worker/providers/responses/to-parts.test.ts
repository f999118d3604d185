import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { sseReader } from '#shared/http/sse-reader.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { isTextDelta, readEvent } from './event.ts';
import { ResponseReader } from './to-parts.ts';

function read(...events: readonly unknown[]) {
  const reader = new ResponseReader();
  const parts = reader.readEvents(events.map((event) => ({ event: null, data: typeof event === 'string' ? event : JSON.stringify(event) })));
  return { reader, parts };
}

const text = (delta: string) => ({ type: 'response.output_text.delta', delta, logprobs: [] });
const end = (status: string, fields: object = {}) => ({ type: `response.${status}`, response: { status, ...fields } });

describe('a broken answer', () => {
  it('ends at what is not JSON, after what came before it', () => {
    const { reader, parts } = read(text('a'), '{"type":', text('b'));
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(reader.broken).toBeInstanceOf(SyntaxError);
  });

  it.each([
    [end('failed', { error: { code: 'server_error', message: 'no' } }), { code: 'server_error', message: 'no' }],
    [
      { type: 'error', code: 'rate_limit_exceeded', message: 'no', param: null },
      { code: 'rate_limit_exceeded', message: 'no' },
    ],
    [
      { type: 'error', error: { code: 'x', message: 'no' } },
      { code: 'x', message: 'no' },
    ],
  ])('ends at %o', (event, error) => {
    const { reader } = read(text('a'), event);
    expect(reader).toMatchObject({ finished: false, broken: expect.any(ErrorEvent) });
    expect(reader.broken).toMatchObject({ error });
  });

  it.each([{ type: 'response.output_text.delta', delta: 7 }, { type: 'response.output_item.added', item: {} }, [1]])('ends at %o', (event) => {
    expect(read(event).reader).toMatchObject({ broken: { name: 'ZodError' } });
  });

  it('is a tool call without an id, and items without end', () => {
    const added = (index: number, item: object) => ({ type: 'response.output_item.added', output_index: index, item });
    expect(read(added(0, { type: 'function_call', name: 'look' })).reader.broken).toBeInstanceOf(SyntaxError);
    expect(read(...Array.from({ length: 2_049 }, (_, index) => added(index, { type: 'message' }))).reader.broken).toBeInstanceOf(SyntaxError);
  });

  it('is a whole body that is no answer', () => {
    const reader = new ResponseReader();
    expect(reader.readWhole('{"error":{"message":"no"}}')).toEqual([]);
    expect(reader.broken).toMatchObject({ error: { message: 'no' } });
  });
});

describe('an answer', () => {
  it('has summaries, encrypted reasoning, sources, and calls numbered on their own', async () => {
    const bytes = await readFile(new URL('./__fixtures__/reasoning-and-tools.sse', import.meta.url));
    const sse = sseReader({ maxEventChars: 100_000 });
    const reader = new ResponseReader();
    const parts = [...reader.readEvents(sse.read(bytes)), ...reader.readEvents(sse.end())];
    const block = { index: 0, id: 'rs_1', format: 'openai-responses-v1' };
    expect(reader).toMatchObject({ broken: null, finished: true, ended: true, hasUsage: true });
    expect(parts).toEqual([
      { type: 'response-metadata', id: 'resp_1', systemFingerprint: null, serviceTier: 'default' },
      { type: 'reasoning-summary-delta', text: 'First.', block },
      { type: 'reasoning-summary-delta', text: '\n\n', block },
      { type: 'reasoning-summary-delta', text: 'Then.', block },
      { type: 'reasoning-encrypted', data: 'gAAAAABo', block },
      { type: 'text-delta', text: 'I ' },
      { type: 'text-delta', text: 'look.' },
      { type: 'annotation', annotation: { type: 'url_citation', url_citation: { url: 'https://tides.test/a', title: 'Tides', start_index: 0, end_index: 6 } } },
      { type: 'tool-call-start', index: 0, id: 'call_A', name: 'get_weather' },
      { type: 'tool-call-delta', index: 0, arguments: '{"city":' },
      { type: 'tool-call-delta', index: 0, arguments: '"Paris"}' },
      { type: 'tool-call-start', index: 1, id: 'call_B', name: 'get_time' },
      { type: 'tool-call-delta', index: 1, arguments: '{}' },
      { type: 'finish', reason: 'tool_calls', nativeReason: 'completed' },
      { type: 'usage', usage: { promptTokens: 30, completionTokens: 40, cachedTokens: 16, reasoningTokens: 25 } },
    ]);
  });

  it.each([
    [end('completed'), 'stop', 'completed'],
    [end('incomplete', { incomplete_details: { reason: 'max_output_tokens' } }), 'length', 'max_output_tokens'],
    [end('incomplete', { incomplete_details: { reason: 'content_filter' } }), 'content_filter', 'content_filter'],
  ])('that ends with %o', (event, reason, nativeReason) => {
    expect(read(text('a'), event).parts.at(-1)).toEqual({ type: 'finish', reason, nativeReason });
  });

  it('has refusals and log probabilities', () => {
    const token = { token: 'a', logprob: -0.5, bytes: [97] };
    const { parts } = read(
      { ...text('a'), logprobs: [{ ...token, top_logprobs: [{ token: 'b', logprob: -1 }] }] },
      { type: 'response.refusal.delta', delta: 'no' },
    );
    expect(parts).toEqual([
      { type: 'text-delta', text: 'a', logprobs: { content: [{ ...token, top_logprobs: [{ token: 'b', logprob: -1, bytes: null }] }], refusal: null } },
      { type: 'refusal-delta', text: 'no' },
    ]);
  });

  it('is read alike by the quick check and by the schema', () => {
    expect(isTextDelta(text('a'))).toBe(true);
    expect(readEvent(text('a'))).toMatchObject(text('a'));
    expect(isTextDelta({ ...text('a'), logprobs: [{}] })).toBe(false);
    expect(isTextDelta({ ...text('a'), delta: 7 })).toBe(false);
  });
});
