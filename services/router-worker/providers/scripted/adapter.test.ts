import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import { scripted } from './adapter.ts';

const adapter = scripted({ slug: 'local', name: 'Local', wordsPerSecond: 60 });
const SHORT = { connectMs: 1_000, firstTokenMs: 30, idleMs: 30 };

async function onParts(
  text: string,
  { signal = new AbortController().signal, model = 'primary', tools = [] as ChatTool[], fields = {} as Partial<ChatRequest> } = {},
) {
  const batches: (readonly ProviderPart[])[] = [];
  let thrown: unknown = null;
  try {
    const request = { messages: [{ role: 'user' as const, content: text }], tools, ...fields };
    await adapter.stream({ model, request, timeouts: SHORT }, signal, (parts) => batches.push(parts) > 0);
  } catch (error) {
    thrown = error;
  }
  const parts = batches.flat();
  return { batches, parts, thrown, text: parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('') };
}

it('assigns two ids to two equal tool calls, in one answer and in the answers to one request', async () => {
  const tools: ChatTool[] = [{ type: 'function', function: { name: 'get_weather' } }];
  const answers = [await onParts('call get_weather and call get_weather', { tools }), await onParts('call get_weather and call get_weather', { tools })];
  const ids = answers.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call-start' ? [part.id] : [])));
  expect(ids).toHaveLength(4);
  expect(new Set(ids).size).toBe(4);
});

it('names the tier that served, when a request asks for one', async () => {
  const tiersOf = async (fields: Partial<ChatRequest>) =>
    (await onParts('Hello!', { fields })).parts.flatMap((part) => (part.type === 'response-metadata' ? [part.serviceTier] : []));
  expect(await tiersOf({ service_tier: 'flex' })).toEqual(['default']);
  expect(await tiersOf({})).toEqual([]);
});

it('reasons under either name of the effort, and in a summary when a request asks for one', async () => {
  const reasoningOf = async (fields: Partial<ChatRequest>) =>
    (await onParts('How long is the warranty?', { fields })).parts.filter((part) => part.type.startsWith('reasoning-'));
  const plain = await reasoningOf({ reasoning_effort: 'low' });
  const summary = await reasoningOf({ reasoning: { effort: 'low', summary: 'auto' } });
  expect(plain.length).toBeGreaterThan(3);
  expect(new Set(plain.map(({ type }) => type))).toEqual(new Set(['reasoning-delta']));
  expect(summary).toEqual(plain.map((part) => ({ ...part, type: 'reasoning-summary-delta', block: { index: 0, id: null, format: 'unknown' } })));
  expect(await reasoningOf({ reasoning_effort: 'none' })).toEqual([]);
  expect(await reasoningOf({ reasoning: { summary: 'auto' } })).toEqual([]);
});

describe('!fail', () => {
  it.each<[string, ErrorCode, Record<string, unknown>]>([
    ['connect', 'router.provider_unavailable', { reason: 'ECONNREFUSED' }],
    ['timeout', 'router.provider_unavailable', { reason: 'timeout' }],
    ['stall', 'router.provider_unavailable', { reason: 'timeout' }],
    ['429', 'router.provider_rate_limited', { status: 429 }],
    ['429 retry-after=7', 'router.provider_rate_limited', { retryAfterMs: 7_000 }],
    ['500', 'router.provider_unavailable', { status: 500 }],
    ['529 retry-after=1', 'router.provider_overloaded', { status: 529, retryAfterMs: 1_000 }],
    ['error-event', 'router.provider_unavailable', {}],
    ['cut', 'router.provider_unavailable', {}],
    ['malformed', 'router.provider_unavailable', {}],
    ['empty', 'router.provider_unavailable', {}],
  ])('%s fails before any content', async (kind, code, details) => {
    const { thrown, parts } = await onParts(`!fail ${kind}`);
    expect(thrown).toMatchObject({ code, details });
    expect(parts).toEqual([]);
  });

  it.each(['stall', 'error-event', 'cut', 'malformed'])('%s after=2 fails after two words', async (kind) => {
    const { thrown, text } = await onParts(`!fail ${kind} after=2 !repeat 2 one two three`);
    expect(thrown).toMatchObject({ code: 'router.provider_unavailable' });
    expect(text).toBe('one two');
  });

  it('refuse is a refusal, and a whole answer', async () => {
    const { thrown, parts } = await onParts('!fail refuse');
    expect(thrown).toBeNull();
    expect(parts.map(({ type }) => type)).toEqual(['refusal-delta', 'finish']);
  });

  it('with on= fails one model only', async () => {
    expect((await onParts('!fail 500 on=primary')).thrown).not.toBeNull();
    expect((await onParts('!fail 500 on=primary', { model: 'spare' })).thrown).toBeNull();
  });

  it('of an unknown kind is no directive', async () => {
    const { thrown, text } = await onParts('!repeat 2 !fail sometimes');
    expect(thrown).toBeNull();
    expect(text).toContain('!fail sometimes');
  });
});

describe('a streamed answer', () => {
  afterEach(() => void vi.useRealTimers());

  const say = (words: number) => ({ messages: [{ role: 'user' as const, content: `!repeat ${words} word` }] });
  const begin = (words: number, { isStreamed = true, wordsPerSecond = 60, signal = new AbortController().signal } = {}) => {
    const batches: (readonly ProviderPart[])[] = [];
    const speaking = scripted({ slug: 'local', name: 'Local', wordsPerSecond }).stream(
      { model: 'primary', request: say(words), timeouts: SHORT, isStreamed },
      signal,
      (parts) => batches.push(parts) > 0,
    );
    const wordsSoFar = () => batches.flat().filter(({ type }) => type === 'text-delta').length;
    return { speaking, batches, wordsSoFar };
  };

  it('has its rate: each of 40 concurrent ones sends 60 words a second, by at most 20 timers, and nothing runs in between', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const streams = Array.from({ length: 40 }, () => begin(120));

    // Ticks alone advance nothing.
    for (let tick = 0; tick < 200; tick += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(streams.map(({ wordsSoFar }) => wordsSoFar())).toEqual(streams.map(() => 0));

    await vi.advanceTimersByTimeAsync(1_000);
    expect(streams.map(({ wordsSoFar }) => wordsSoFar())).toEqual(streams.map(() => 60));
    expect(timers.mock.calls.length).toBeLessThanOrEqual(40 * 21);

    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all(streams.map(({ speaking }) => speaking));
    expect(streams.map(({ wordsSoFar }) => wordsSoFar())).toEqual(streams.map(() => 120));
    timers.mockRestore();
  });

  it('at a slow rate is sent word by word', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { speaking, wordsSoFar } = begin(3, { wordsPerSecond: 2 });

    await vi.advanceTimersByTimeAsync(1_000);
    expect(wordsSoFar()).toBe(2);
    await vi.advanceTimersByTimeAsync(500);
    await speaking;
    expect(wordsSoFar()).toBe(3);
  });

  it.each([
    ['is unpaced with 0', { wordsPerSecond: 0 }],
    ['that is shown whole is never paced', { isStreamed: false, wordsPerSecond: 1 }],
  ])('%s', async (_case, options) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { speaking, wordsSoFar } = begin(200, options);

    await speaking;

    expect(wordsSoFar()).toBe(200);
  });

  it('ends at once when it is aborted in a pause', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const controller = new AbortController();
    const { speaking } = begin(200, { signal: controller.signal });
    await vi.advanceTimersByTimeAsync(75);
    const reason = new Error('left');

    controller.abort(reason);

    await expect(speaking).rejects.toBe(reason);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an abort', () => {
  const left = new Error('left');

  it('before the start sends nothing', async () => {
    expect(await onParts('hi', { signal: AbortSignal.abort(left) })).toMatchObject({ thrown: left, parts: [] });
  });

  it.each(['!slow 60000 hi', '!fail timeout hi', '!fail stall after=1 hi'])('during "%s" ends it at once', async (text) => {
    const controller = new AbortController();
    const partHandlerFor = onParts(text, { signal: controller.signal });
    setImmediate(() => controller.abort(left));
    expect((await partHandlerFor).thrown).toBe(left);
  });
});

it('sends a word at a time, yields to other work after each, and ends with finish and usage', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    ticking = setImmediate(count);
  };
  let ticking = setImmediate(count);
  const { batches, text } = await onParts('!repeat 5 one two');
  clearImmediate(ticking);
  expect(text).toBe('one two one two one two one two one two');
  expect(batches.slice(0, -2).every((batch) => batch.length === 1)).toBe(true);
  expect(
    batches
      .slice(-2)
      .flat()
      .map(({ type }) => type),
  ).toEqual(['finish', 'usage']);
  expect(turns).toBeGreaterThanOrEqual(9);
});

it('sends the arguments of a tool call in pieces', async () => {
  const tools = [
    { type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } } },
  ];
  const request = { messages: [{ role: 'user' as const, content: 'call look {"at":"it"}' }], tools };
  const parts: ProviderPart[] = [];
  await adapter.stream({ model: 'm', request, timeouts: SHORT }, new AbortController().signal, (batch) => parts.push(...batch) > 0);
  expect(parts.slice(0, -1)).toEqual([
    { type: 'tool-call-start', index: 0, id: expect.any(String), name: 'look' },
    { type: 'tool-call-delta', index: 0, arguments: '{"at":' },
    { type: 'tool-call-delta', index: 0, arguments: '"it"}' },
    { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_calls' },
  ]);
});
