import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '../../bus/bus.ts';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import type { ReadyFrame } from '../../bus/messages/frame.ts';
import type { RouterCall } from '../../bus/messages/router.ts';
import { readyFrames } from '../../bus/messages/test-support/ready-frames.ts';
import { addresses, subjectOf } from '../../bus/subjects.ts';
import type { UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { routerConfig } from '../../shared/config/router-config.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { ulid } from '../../shared/ids.ts';
import type { Database } from '../../shared/storage/database.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';

const WAIT = { timeout: 60_000, interval: 5 };
/** Shorter than the 30 s after which a call without interest is ended; an abort takes milliseconds. */
const BEFORE_LIMITS = { timeout: 20_000, interval: 5 };
const quiet = () => {};

let database: Database;
let bus: Bus;
let first: OpenAiUpstream;
let second: OpenAiUpstream;
let worker: { stop(): Promise<void> };

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  first = await openOpenAiUpstream();
  second = await openOpenAiUpstream();
  const config = routerConfig.parse({
    providers: [
      { slug: 'first', name: 'First', kind: 'openai-compatible', base_url: first.baseUrl, api_key: '${FIRST_KEY}' },
      { slug: 'second', name: 'Second', kind: 'openai-compatible', base_url: second.baseUrl },
    ],
    models: [{ id: 'loop/back', endpoints: ['first', 'second'].map((provider) => ({ provider, upstream_model: `${provider}-model` })) }],
    keys: [{ id: 'k', key: '${KEY}' }],
    // Longer than any wait of the tests, so that none ends by a limit.
    timeouts: { first_token_ms: 600_000, idle_ms: 600_000 },
  });
  const log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
  worker = await startRouterWorker({ config, environment: { FIRST_KEY: 'sk-first-0123456789' }, bus, database, cache: null, log, clock: systemClock });
});

afterAll(async () => {
  await worker.stop();
  await bus.close();
  await database.close();
  await Promise.all([first.close(), second.close()]);
});

beforeEach(() => {
  first.answer({});
  second.answer({});
});

async function call(fields: Partial<ChatRequest> = {}, want: RouterCall['want'] = 'frames'): Promise<RouterCall> {
  const nowMs = systemClock.nowMs();
  const made: RouterCall = {
    v: 1,
    callId: `gen-gw-${ulid()}`,
    origin: 'gw',
    want,
    deadlineAtMs: nowMs + 600_000,
    createdAtMs: nowMs,
    detached: false,
    republished: false,
    keyId: 'k',
    traceparent: null,
    maxTokens: null,
    // Stated, for providers that have failed come last otherwise.
    request: { messages: [{ role: 'user', content: 'hi' }], ...fields, provider: { order: ['first', 'second'], ...fields.provider } },
    reply: null,
  };
  await bus.work.publish('router.call', made.callId, JSON.stringify(made));
  return made;
}

async function framesUntil({ callId, origin }: RouterCall, isEnough: (last: ReadyFrame | undefined) => boolean): Promise<ReadyFrame[]> {
  return vi.waitFor(async () => {
    const frames = readyFrames(callId, await bus.tokens.replay(subjectOf(addresses.tokens, origin, callId)));
    if (!isEnough(frames.at(-1))) throw new Error(`only ${frames.map(({ kind }) => kind)}`);
    return frames;
  }, WAIT);
}
const untilEnd = (made: RouterCall) => framesUntil(made, (last) => last !== undefined && last.kind !== 'open' && last.kind !== 'content');

function chunksOf(frames: readonly ReadyFrame[]): Record<string, unknown>[] {
  const sse = frames.map((frame) => (frame.kind === 'body' ? '' : Buffer.from(frame.sse).toString('utf8'))).join('');
  return [...sse.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
}

const textOf = (chunks: Record<string, unknown>[]) => chunks.map(({ choices }) => (Array.isArray(choices) ? (choices[0]?.delta?.content ?? '') : '')).join('');

it.each<[string, UpstreamScenario]>([
  ['is rate limited', { refuse: { status: 429 } }],
  ['is broken', { refuse: { status: 500 } }],
  ['hangs up', { fault: 'hang-up' }],
  ['refuses our key', { refuse: { status: 401 } }],
  ['sends an error in the place of the first token', { fault: 'error-event' }],
  ['ends without a word', { fault: 'ends-early' }],
])('DESIGN 8: the second provider is asked when the first %s', async (_, scenario) => {
  first.answer(scenario);
  const chunks = chunksOf(await untilEnd(await call()));
  expect(textOf(chunks)).toBe('Hello there');
  expect(new Set(chunks.map(({ provider }) => provider))).toEqual(new Set(['Second']));
});

it('ends with the error chunk when the provider breaks off in the middle, without a fallback', async () => {
  const asked = second.requests.length;
  first.answer({ text: ['one ', 'two'], fault: 'cut', after: 1 });
  const frames = await untilEnd(await call());
  expect(frames.map(({ kind }) => kind)).toEqual(['content', 'error']);
  expect(chunksOf(frames).at(-1)).toMatchObject({ provider: 'First', error: { code: 502 }, choices: [{ finish_reason: 'error' }] });
  expect(second.requests).toHaveLength(asked);
});

it('closes the provider’s connection at once when the client disconnects', async () => {
  first.answer({ text: ['one ', 'two'], fault: 'stall', after: 1 });
  const aborts = first.aborts;
  const made = await call();
  await framesUntil(made, (last) => last?.kind === 'content');
  bus.notices.publish(subjectOf(addresses.control, made.callId), '{"abort":true}');
  await vi.waitFor(() => expect(first.aborts).toBe(aborts + 1), BEFORE_LIMITS);
});

it('shows one upstream body for each provider that is called, and no credential', async () => {
  first.answer({ refuse: { status: 500, message: 'sk-first-0123456789 is fine, we are not' } });
  const made = await call({ debug: { echo_upstream_body: true }, stream: true });
  const chunks = chunksOf(await untilEnd(made));
  expect(chunks.filter(({ debug }) => debug !== undefined)).toEqual([
    expect.objectContaining({ provider: 'First', choices: [], debug: { echo_upstream_body: expect.objectContaining({ model: 'first-model', stream: true }) } }),
    expect.objectContaining({ provider: 'Second', choices: [], debug: { echo_upstream_body: expect.objectContaining({ model: 'second-model' }) } }),
  ]);
  expect(JSON.stringify(chunks)).not.toContain('sk-first');
});

it('returns the provider’s refusal of an invalid request, without a fallback', async () => {
  const asked = second.requests.length;
  first.answer({ refuse: { status: 400, message: 'messages must not be like that', code: 'bad_messages' } });
  const [frame] = await untilEnd(await call({}, 'body'));
  expect(frame).toMatchObject({ kind: 'body', status: 400 });
  const body = frame?.kind === 'body' ? JSON.parse(Buffer.from(frame.body).toString('utf8')) : null;
  expect(body.error).toMatchObject({
    code: 400,
    metadata: { provider_name: 'First', provider_code: 'bad_messages', raw: { message: 'messages must not be like that' } },
  });
  expect(second.requests).toHaveLength(asked);
});

it.each([401, 402, 403, 404])('DESIGN 8: without fallbacks the provider’s own error is the answer, never with its status %i', async (status) => {
  const asked = second.requests.length;
  first.answer({ refuse: { status, message: 'not with sk-first-0123456789', code: 'no_such_right' } });
  const [frame] = await untilEnd(await call({ provider: { order: ['first'], allow_fallbacks: false } }, 'body'));
  expect(frame).toMatchObject({ kind: 'body', status: 502 });
  const body = frame?.kind === 'body' ? JSON.parse(Buffer.from(frame.body).toString('utf8')) : null;
  expect(body.error).toMatchObject({
    code: 502,
    message: 'First: not with [redacted]',
    metadata: { provider_name: 'First', provider_code: 'no_such_right', provider_status: status, raw: { message: 'not with [redacted]' } },
  });
  expect(second.requests).toHaveLength(asked);
});

it.each<[string, UpstreamScenario, string | RegExp]>([
  ['refuses our key', { refuse: { status: 401, message: 'wrong key' } }, 'wrong key'],
  ['hangs up', { fault: 'hang-up' }, /./],
  ['ends without a word', { fault: 'ends-early', after: 0 }, /./],
  ['breaks off in the middle', { text: ['one ', 'two'], fault: 'cut', after: 1 }, /./],
  ['sends an error in the middle', { text: ['one ', 'two'], fault: 'error-event', after: 1 }, /./],
])('DESIGN 8: the error of a provider that %s names it and what it said, in the last chunk and in a whole answer', async (_, scenario, said) => {
  for (const upstream of [first, second]) upstream.answer(scenario);
  const chunk = chunksOf(await untilEnd(await call())).at(-1) ?? {};
  const [frame] = await untilEnd(await call({}, 'body'));
  const body = frame?.kind === 'body' ? JSON.parse(Buffer.from(frame.body).toString('utf8')) : null;
  for (const { error } of [chunk, body.error === undefined ? body.choices[0] : body]) {
    expect(error.metadata).toMatchObject({ error_type: expect.any(String), provider_name: expect.stringMatching(/^(First|Second)$/), raw: expect.anything() });
    expect(JSON.stringify(error.metadata.raw)).toMatch(said);
  }
});
