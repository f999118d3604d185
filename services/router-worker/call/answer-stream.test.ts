import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ReadyFrame, readFrame, sseFrame } from '#bus/messages/frame.ts';
import { treatmentOf } from '#bus/messages/retention.ts';
import { FirstFrameReader } from '#bus/messages/test-support/first-frames.ts';
import { readyFrames } from '#bus/messages/test-support/ready-frames.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { toCompletion } from '#shared/surfaces/chat-completions/completion.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import { parseExactly } from '../providers/exact-numbers.ts';
import { AnswerStream, type StreamTarget } from './answer-stream.ts';
import { echoBody } from './echo-body.ts';
import { billOf } from './usage.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East "1"' };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

function opened(about: Partial<StreamTarget> = {}, named = head) {
  const frames: Uint8Array[] = [];
  const tokens = { publish: (_: string, frame: Uint8Array) => frames.push(frame) };
  const target = { surface: chatCompletions, callId: 'gen-1', attempt: 2, isLogged: false, statesTemplate: true, tokens, framesAt: 'tok.g.gen-1', ...about };
  return { writer: new AnswerStream(target, { ...named, request: { messages: [] }, now: () => 8 }), frames };
}

/** The events of each frame as a client sees them: parsed, the end mark verbatim. */
function eventsOf(frames: readonly Uint8Array[]): unknown[][] {
  return readyFrames('gen-1', frames).map(eventsIn);
}

function eventsIn(frame: ReadyFrame): unknown[] {
  if (frame.kind === 'body') throw new Error('not a frame of a stream');
  const events = Buffer.from(frame.sse).toString('utf8').split('\n\n');
  expect(events.pop()).toBe('');
  return events.map((event, index) => {
    const start = `id: gen-1.${frame.attempt}.${frame.seq}${index === 0 ? '' : `.${index + 1}`}\ndata: `;
    expect(event.startsWith(start)).toBe(true);
    const data = event.slice(start.length);
    return data === '[DONE]' ? data : JSON.parse(data);
  });
}

const kindsOf = (frames: readonly Uint8Array[]) => frames.map((frame) => readFrame('gen-1', frame)?.kind);

const chunk = (delta: object) => ({
  ...head,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: null, native_finish_reason: null, logprobs: null }],
});

afterEach(() => {
  vi.useRealTimers();
});

describe('the frames of a call', () => {
  it('end with the error chunk and nothing behind it, and carry the body for a gateway that has sent no header yet', () => {
    const { writer, frames } = opened();
    const body = { error: { code: 502, message: 'broke', type: 'provider_unavailable', param: '', metadata: { error_type: 'provider_unavailable' } } };
    writer.fail(body);
    const [bytes] = frames;
    const frame = readFrame('gen-1', bytes ?? new Uint8Array());
    expect(frame).toMatchObject({ kind: 'error', status: 502, attempt: 2, seq: 1 });
    expect(frame?.kind === 'error' && JSON.parse(Buffer.from(frame.body).toString('utf8'))).toEqual(body);
    expect(eventsOf(frames).flat()).toEqual([
      {
        ...head,
        object: 'chat.completion.chunk',
        error: { code: 502, message: 'broke', metadata: { error_type: 'provider_unavailable' } },
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
      },
    ]);
  });

  it('have the role once, before the first content, in the same frame', () => {
    const { writer, frames } = opened();
    writer.parts([{ type: 'text-delta', text: 'a' }]);
    writer.parts([{ type: 'text-delta', text: 'b' }]);
    expect(kindsOf(frames)).toEqual(['content', 'text']);
    expect(eventsOf(frames)).toEqual([[chunk({ role: 'assistant', content: '' }), chunk({ content: 'a' })], [chunk({ content: 'b' })]]);
  });

  it('hold one chunk for each part of a batch, without empty keys', () => {
    const { writer, frames } = opened();
    writer.parts([
      { type: 'reasoning-delta', text: 'hm' },
      { type: 'refusal-delta', text: 'no' },
      { type: 'tool-call-start', index: 0, id: 'call_1', name: 'f' },
      { type: 'tool-call-delta', index: 0, arguments: '{"a":"\n"}' },
      { type: 'usage', usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 } },
      { type: 'finish', reason: 'stop', nativeReason: 'stop' },
    ]);
    expect(eventsOf(frames).flat().slice(1)).toEqual([
      chunk({ reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm', index: 0, format: 'unknown' }] }),
      chunk({ refusal: 'no' }),
      chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":"\n"}' } }] }),
    ]);
  });

  it('publish nothing for a batch without content', () => {
    const { writer, frames } = opened();
    writer.parts([{ type: 'finish', reason: 'stop', nativeReason: 'stop' }]);
    expect(frames).toEqual([]);
  });

  it('end with the finish, the usage once, and the end mark', () => {
    const { writer, frames } = opened();
    const answer = { ...emptyAnswer(), text: 'a', finishReason: 'stop' as const, nativeReason: 'eos' };
    writer.parts([{ type: 'text-delta', text: 'a' }]);
    writer.finish(answer, usage);
    expect(readFrame('gen-1', frames[1] ?? new Uint8Array())).toMatchObject({ kind: 'done', seq: 2 });
    expect(eventsOf(frames)[1]).toEqual([
      {
        ...chunk({}),
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop', native_finish_reason: 'eos', logprobs: null }],
      },
      { ...head, object: 'chat.completion.chunk', choices: [], usage },
      '[DONE]',
    ]);
  });

  it('have the role also in an answer without content', () => {
    const { writer, frames } = opened();
    writer.finish({ ...emptyAnswer(), finishReason: 'stop' }, usage);
    expect(eventsOf(frames).flat()[0]).toEqual(chunk({ role: 'assistant', content: '' }));
  });

  it('open with the upstream’s body for debug requests, without content, and name the provider that is called next', () => {
    const { writer, frames } = opened();
    writer.debug({ model: 'm' });
    writer.begin({ ...head, provider: 'West', request: { messages: [] }, now: () => 8 }, emptyAnswer());
    writer.debug({ model: 'm' });
    expect(kindsOf(frames)).toEqual(['open', 'open']);
    expect(eventsOf(frames).flat()).toEqual([
      { ...head, object: 'chat.completion.chunk', choices: [], debug: { echo_upstream_body: { model: 'm' } } },
      { ...head, provider: 'West', object: 'chat.completion.chunk', choices: [], debug: { echo_upstream_body: { model: 'm' } } },
    ]);
  });

  it('show the numbers of the upstream’s body as they are sent', () => {
    const { writer, frames } = opened();
    writer.debug(echoBody({ input: parseExactly('{"id":12345678901234567890,"list":[1.0]}') }));
    const [frame] = readyFrames('gen-1', frames);
    expect(frame?.kind !== 'body' && Buffer.from(frame?.sse ?? []).toString('utf8')).toContain('{"input":{"id":12345678901234567890,"list":[1.0]}}');
  });

  it('DESIGN 7: a token is sent as its text only, once a frame has carried its template', () => {
    const { writer, frames } = opened();
    for (const text of ['a', 'b "quoted"\n', '\u{1f600}']) writer.parts([{ type: 'text-delta', text }]);
    expect(frames.slice(1).map((frame) => Buffer.from(frame).toString())).toEqual(['t2.2\n"b \\"quoted\\"\\n"', 't2.3\n"\u{1f600}"']);
  });

  it('repeat the template after a while, for readers that missed the first one', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { writer, frames } = opened();
    for (let second = 0; second < 63; second += 1) {
      writer.parts([{ type: 'text-delta', text: 'a' }]);
      vi.advanceTimersByTime(1_000);
    }
    expect(kindsOf(frames).flatMap((kind, second) => (kind === 'content' ? [second] : []))).toEqual([0, 30, 60]);
    expect(eventsOf(frames).flat().slice(1)).toEqual(Array.from({ length: 63 }, () => chunk({ content: 'a' })));
  });

  it('carry logprobs on the chunk of their text', () => {
    const { writer, frames } = opened();
    const logprobs = { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null };
    writer.parts([{ type: 'text-delta', text: 'a', logprobs }]);
    writer.parts([{ type: 'text-delta', text: 'a', logprobs }]);
    for (const index of [1, 2]) expect(eventsOf(frames).flat()[index]).toMatchObject({ choices: [{ delta: { content: 'a' }, logprobs }] });
  });
});

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const toolCall = fc.record({ id: fc.stringMatching(/^call_[a-z0-9]{4}$/), name: fc.stringMatching(/^[a-z_]{1,8}$/), pieces: fc.array(text, { maxLength: 3 }) });
const answerParts = fc
  .record({
    said: fc.array(fc.tuple(fc.constantFrom('text-delta', 'reasoning-delta', 'refusal-delta'), text), { maxLength: 10 }),
    calls: fc.array(toolCall, { maxLength: 3 }),
    reason: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter'),
  })
  .map(({ said, calls, reason }): ProviderPart[] => [
    ...said.map(([type, piece]) => ({ type, text: piece }) as ProviderPart),
    ...calls.flatMap(({ id, name, pieces }, index): ProviderPart[] => [
      { type: 'tool-call-start', index, id, name },
      ...pieces.map((piece): ProviderPart => ({ type: 'tool-call-delta', index, arguments: piece })),
    ]),
    { type: 'finish', reason, nativeReason: reason },
  ]);

interface ClientChoice {
  delta: {
    content?: string;
    reasoning?: string;
    refusal?: string;
    tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
  };
  finish_reason: string | null;
}

/** Accumulates a stream as the public SDKs do. */
function accumulateAsClient(events: unknown[]) {
  const accumulated = {
    content: '',
    reasoning: '',
    refusal: '',
    calls: [] as { id?: string; name?: string; arguments: string }[],
    finishReason: null as string | null,
  };
  for (const event of events) {
    const { choices } = event as { choices: ClientChoice[] };
    for (const { delta, finish_reason: reason } of choices ?? []) {
      accumulated.content += delta.content ?? '';
      accumulated.reasoning += delta.reasoning ?? '';
      accumulated.refusal += delta.refusal ?? '';
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        accumulated.calls[index] ??= { arguments: '' };
        const call = accumulated.calls[index];
        if (id !== undefined) call.id = id;
        if (called.name !== undefined) call.name = called.name;
        call.arguments += called.arguments;
      }
      accumulated.finishReason ??= reason;
    }
  }
  return accumulated;
}

it('a client that accumulates the stream has the content of the whole answer, however the parts were batched', () => {
  fc.assert(
    fc.property(answerParts, fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }), (parts, sizes) => {
      const { writer, frames } = opened();
      const answer = emptyAnswer();
      for (let at = 0, turn = 0; at < parts.length; turn += 1) {
        const batch = parts.slice(at, at + (sizes[turn % sizes.length] ?? 1));
        for (const part of batch) addPart(answer, part);
        writer.parts(batch);
        at += batch.length;
      }
      const total = billOf(answer, { messages: [] }, undefined).usage;
      writer.finish(answer, total);
      const events = eventsOf(frames).flat();
      const accumulated = accumulateAsClient(events);
      const [choice] = toCompletion(answer, head, total).choices;
      const message = choice?.message;
      expect(accumulated).toEqual({
        content: message?.content ?? '',
        reasoning: message?.reasoning ?? '',
        refusal: message?.refusal ?? '',
        calls: (message?.tool_calls ?? []).map(({ id, function: called }) => ({ id, name: called.name, arguments: called.arguments })),
        finishReason: choice?.finish_reason,
      });
      expect(events.filter((event) => typeof event === 'object' && event !== null && 'usage' in event)).toHaveLength(1);
    }),
  );
});

it('DESIGN 7: the first content of an answer is retained at once, and so is its end; what is between them may be retained a little later', () => {
  const expected = [
    'open at once',
    'content at once, first',
    'content soon',
    'text soon',
    'text soon',
    'content soon',
    'content at once, first',
    'content soon',
    'done at once',
  ];
  expect(retainedOf(false)).toEqual(expected);
});

it('frames of an actor’s call may be retained a little later, and not at all once it has ended: the log has its text then', () => {
  const expected = [
    'open soon',
    'content soon, first',
    'content soon',
    'text soon',
    'text soon',
    'content soon',
    'content soon, first',
    'content soon',
    'done no more',
  ];
  expect(retainedOf(true)).toEqual(expected);
});

/** What drivers do with the frames of one answer that takes more than half a minute. */
function retainedOf(isLogged: boolean): string[] {
  vi.useFakeTimers();
  const { writer, frames } = opened({ isLogged });
  writer.debug({});
  for (const part of [{ type: 'reasoning-delta', text: 'hm' } as const, { type: 'text-delta', text: 'a' } as const]) {
    writer.parts([part]);
    writer.parts([part]);
  }
  for (const text of ['b', 'c']) {
    vi.advanceTimersByTime(20_000);
    writer.parts([{ type: 'reasoning-delta', text }]);
    if (text === 'c') writer.parts([{ type: 'reasoning-delta', text }]);
  }
  writer.finish({ ...emptyAnswer(), finishReason: 'stop' }, usage);
  return frames.map((frame) => {
    const { retention, leaves } = treatmentOf(frame);
    return `${readFrame('gen-1', frame)?.kind} ${retention}${leaves === 'at once' ? ', first' : ''}`;
  });
}

describe('a call of the release before', () => {
  const texts = ['a', 'b "', '\u{1f600}'];

  it('gets frames that its gateway reads: the template is that of the first chunk', () => {
    const { writer, frames } = opened({ statesTemplate: false });
    for (const text of texts) writer.parts([{ type: 'text-delta', text }]);
    writer.parts([{ type: 'reasoning-delta', text: 'hm' }]);
    writer.finish({ ...emptyAnswer(), finishReason: 'stop' }, usage);
    const reader = new FirstFrameReader('gen-1');
    const read = frames.map((frame) => reader.read(frame));
    expect(read.map((frame) => frame?.kind)).toEqual(['content', 'content', 'content', 'content', 'done']);
    const seen = read.map((frame) => (frame !== null && 'sse' in frame ? Buffer.from(frame.sse).toString() : ''));
    expect(seen).toEqual(readyFrames('gen-1', frames).map((frame) => ('sse' in frame ? Buffer.from(frame.sse).toString() : '')));
    expect(eventsOf(frames).slice(1, 4).flat()).toEqual([
      chunk({ content: texts[1] }),
      chunk({ content: texts[2] }),
      chunk({ reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm', index: 0, format: 'unknown' }] }),
    ]);
  });

  it('shares no frame with a logged call: its readers know none of them', () => {
    const { writer, frames } = opened({ isLogged: true, surface: surfaces.get('parts') ?? chatCompletions });
    writer.debug({});
    for (const text of texts) writer.parts([{ type: 'text-delta', text }]);
    writer.parts([{ type: 'reasoning-delta', text: 'hm' }]);
    writer.finish({ ...emptyAnswer(), finishReason: 'stop' }, usage);
    opened({ isLogged: true, tokens: { publish: (_, frame) => frames.push(frame) } }).writer.fail({ error: { code: 500, message: '', type: '', param: '' } });
    expect(frames).toHaveLength(7);
    expect(frames.map((frame) => new FirstFrameReader('gen-1').read(frame))).toEqual(frames.map(() => null));
  });
});

it('clients receive of each frame exactly the bytes of a whole one, whatever preceded it', () => {
  const odd = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
  const part = fc.oneof(
    { weight: 4, arbitrary: odd.map((text): ProviderPart => ({ type: 'text-delta', text })) },
    odd.map((text): ProviderPart => ({ type: 'reasoning-delta', text })),
  );
  const heads = fc.record({ id: fc.constant('gen-1'), created: fc.nat(), model: odd, provider: odd });
  fc.assert(
    fc.property(heads, fc.array(fc.array(part, { minLength: 1, maxLength: 2 }), { maxLength: 12 }), (named, batches) => {
      const { writer, frames } = opened({ attempt: 1 }, named);
      for (const batch of batches) writer.parts(batch);
      const seen = readyFrames('gen-1', frames).map((frame) => (frame.kind === 'content' ? Buffer.from(frame.sse).toString() : frame.kind));
      expect(seen).toEqual(batches.map((batch, index) => wholeFrame(named, batch, index)));
    }),
  );
});

/** A batch as one frame of whole chunks, built without the template. */
function wholeFrame(named: typeof head, batch: readonly ProviderPart[], index: number): string {
  const deltas = batch.map((part) => {
    if (part.type !== 'reasoning-delta') return { content: part.type === 'text-delta' ? part.text : '' };
    return { reasoning: part.text, reasoning_details: [{ type: 'reasoning.text', text: part.text, index: 0, format: 'unknown' }] };
  });
  const { id, created, model, provider } = named;
  const start = { id, object: 'chat.completion.chunk', created, model, provider };
  const events = [...(index === 0 ? [{ role: 'assistant', content: '' }] : []), ...deltas].map((delta) => {
    const choices = [{ index: 0, delta, finish_reason: null, native_finish_reason: null, logprobs: null }];
    return `data: ${JSON.stringify({ ...start, choices })}\n\n`;
  });
  return Buffer.from(sseFrame('m', { callId: 'gen-1', attempt: 1, seq: index + 1 }, events.join('')))
    .toString()
    .slice(1);
}
