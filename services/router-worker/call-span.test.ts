import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { itemSpan } from '#services/work/item-span.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { ulid } from '#shared/ids.ts';
import { DeferredMessages, deferMessages } from '#shared/prompts/deferred-messages.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { recordingTracing } from '#shared/telemetry/test-support/recording-tracing.ts';
import { contextBelow, spanIdOf, spanReferenceIn } from '#shared/telemetry/trace-context.ts';
import type { ContentCapture } from '#shared/telemetry/tracing.ts';
import { callTrace } from './call-span.ts';
import { startRouterWorker } from './service.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const FIRST = { delivery: 1, nowMs: 0 };
const WAIT = { timeout: 60_000 };
const config = routerConfig.parse({
  providers: [
    { slug: 'broken', kind: 'openai-compatible', base_url: 'http://127.0.0.1:1/secret-path?key=hush' },
    { slug: 'local', kind: 'scripted' },
  ],
  models: [
    {
      id: 'scripted/assistant',
      endpoints: [
        { provider: 'broken', upstream_model: 'primary' },
        { provider: 'local', upstream_model: 'spare' },
      ],
    },
    { id: 'scripted/spare', endpoints: [{ provider: 'local', upstream_model: 'spare' }] },
    { id: 'scripted/unreachable', endpoints: [{ provider: 'broken', upstream_model: 'only' }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});

const NO_SIZE = { chars: 0, extraBytes: 0, contentChars: 0 };
let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> } | null = null;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
});
afterAll(async () => {
  await bus.close();
  await database.close();
});

function callOf(text: string, fields: Partial<RouterCall> = {}): RouterCall {
  const nowMs = systemClock.nowMs();
  const call = { v: 1, callId: `gen-gw-${ulid()}`, origin: 'gw', want: 'body', deadlineAtMs: nowMs + 30_000, createdAtMs: nowMs } as const;
  const request = { model: 'scripted/assistant', temperature: 0, messages: [{ role: 'user' as const, content: text }] };
  return { ...call, detached: false, republished: false, keyId: 'k', traceparent: PARENT, maxTokens: null, request, reply: null, ...fields };
}

/** Executes a call and returns its spans, the call's own last. */
async function spansOf(call: RouterCall, content: ContentCapture = 'off') {
  const tracing = recordingTracing(content);
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log: silentLog, clock: systemClock, tracing });
  await bus.work.publish('router.call', call.callId, JSON.stringify(call));
  await vi.waitFor(() => expect(tracing.spans.at(-1)?.name).toMatch(/^chat/), WAIT);
  return tracing.spans;
}

describe('the spans of a call', () => {
  it('DESIGN 12: a call has a span, and each try at an upstream one below it, with its host and its outcome', async () => {
    const call = callOf('Hello!');
    const spans = await spansOf(call);

    const chat = spans.at(-1);
    expect(spans.map(({ name, errorType }) => [name, errorType])).toEqual([
      ['upstream broken', 'router.provider_unavailable'],
      // The connection was refused: once more.
      ['upstream broken', 'router.provider_unavailable'],
      ['upstream local', null],
      ['chat scripted/assistant', null],
    ]);
    expect(chat).toMatchObject({ kind: 'client', scope: 'switchyard.gen_ai', parent: PARENT, spanId: spanIdOf(`${call.callId}#1`), links: [] });
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'local',
      'gen_ai.request.model': 'scripted/assistant',
      'gen_ai.request.temperature': 0,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.response.time_to_first_chunk': expect.any(Number),
      'switchyard.attempts': 3,
    });
    expect(spans.slice(0, 3).map(({ parent }) => parent)).toEqual([chat?.traceparent, chat?.traceparent, chat?.traceparent]);
    expect(spans[0]?.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'server.port': 1, 'switchyard.upstream_model': 'primary' });
    // Of an answer that readers get as a whole there are no deltas.
    expect(chat?.attributes?.['switchyard.deltas']).toBeUndefined();
    expect(JSON.stringify(spans)).not.toMatch(/Hello|secret-path|hush/);
  });

  it.each([
    ['of the request', { max_tokens: 5 }, 100, 5],
    ['of the call, where the request has none', {}, 100, 100],
    ['of none', {}, null, undefined],
  ])('name the ceiling of tokens %s', (_, field, maxTokens, named) => {
    const request = { messages: [{ role: 'user' as const, content: 'x' }], ...field };

    expect(callTrace(callOf('', { request, maxTokens }), FIRST, 'off').attributes['gen_ai.request.max_tokens']).toBe(named);
  });

  it('have one code where the caller cancels the call: its own span and that of the try', async () => {
    const text = '!slow 5 !repeat 100000 a b c';
    const request = { model: 'scripted/spare', messages: [{ role: 'user' as const, content: text }] };
    const call = callOf(text, { request, want: 'frames' });
    const frames = bus.tokens.subscribe(subjectOf(addresses.tokens, call.origin, call.callId), () => {
      bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    });
    const spans = await spansOf(call);
    await frames.stop();

    expect(spans.map(({ name, errorType }) => [name, errorType])).toEqual([
      ['upstream local', 'router.cancelled'],
      ['chat scripted/spare', 'router.cancelled'],
    ]);
  });

  it('name how the caller groups and describes a request, within bounds', () => {
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`k${at}`, 'v'.repeat(600)]));
    const request = {
      messages: [{ role: 'user' as const, content: 'x' }],
      session_id: 's-1',
      user: 'u-1',
      metadata,
      trace: { trace_id: 't', big: 'x'.repeat(9_000) },
    };
    const { attributes } = callTrace(callOf('', { request }), FIRST, 'off');

    expect(attributes).toMatchObject({ 'session.id': 's-1', 'user.id': 'u-1', 'switchyard.metadata.k0': 'v'.repeat(512) });
    expect(attributes['switchyard.trace']).toMatch(/^\{"trace_id":"t",/);
    expect(String(attributes['switchyard.trace'])).toHaveLength(4_096);
    expect(Object.keys(attributes).filter((name) => name.startsWith('switchyard.metadata.'))).toHaveLength(16);
    const plain = callTrace(callOf(''), FIRST, 'off').attributes;
    expect([plain['session.id'], plain['user.id'], plain['switchyard.trace']]).toEqual([undefined, undefined, undefined]);
  });

  it('have the messages of a request only with content: they may not be parsed yet', () => {
    const request = deferMessages({ messages: [] } as unknown as ChatRequest, new DeferredMessages(Buffer.from('not parsed'), NO_SIZE));
    expect(callTrace(callOf('', { request }), FIRST, 'off').attributes).not.toHaveProperty('gen_ai.input.messages', expect.anything());
    const parsed = deferMessages({ messages: [] } as unknown as ChatRequest, new DeferredMessages(Buffer.from('[{"role":"user","content":"Hello"}]'), NO_SIZE));
    expect(callTrace(callOf('', { request: parsed }), FIRST, 'full').attributes['gen_ai.input.messages']).toContain('Hello');
  });

  it('say what an actor’s call is for, and how long it has waited for a worker', () => {
    const step = { name: 'match', items: 5, batchClass: 'actionable' };
    const { attributes } = callTrace({ ...callOf('', { step }), createdAtMs: 1_000 }, { delivery: 1, nowMs: 1_250 }, 'off');

    const about = { 'switchyard.call.kind': 'match', 'switchyard.batch.class': 'actionable', 'switchyard.batch.size': 5, 'switchyard.queue.wait_ms': 250 };
    expect(attributes).toMatchObject(about);
    expect(callTrace(callOf(''), FIRST, 'off').attributes['switchyard.call.kind']).toBeUndefined();
  });

  it('say which form of answer and which tools a request has, and the address that was asked last', async () => {
    const format = { type: 'json_schema' as const, json_schema: { name: 'verdict', schema: { type: 'object' } } };
    const tools = [{ type: 'function' as const, function: { name: 'book', description: 'Books at https://u:hush@host', parameters: { type: 'object' } } }];
    const request = { messages: [{ role: 'user' as const, content: 'x' }], response_format: format, tools };
    const of = (content: ContentCapture) => callTrace(callOf('', { request }), FIRST, content).attributes;

    expect(of('off')).toMatchObject({ 'gen_ai.output.type': 'json', 'gen_ai.tool.definitions': undefined });
    expect(of('redacted')['gen_ai.tool.definitions']).toBe('[{"type":"function","name":"book"}]');
    expect(JSON.parse(String(of('full')['gen_ai.tool.definitions']))).toEqual([
      { type: 'function', name: 'book', description: 'Books at https://[redacted]@host', parameters: { type: 'object' } },
    ]);
    const plain = callTrace(callOf(''), FIRST, 'full').attributes;
    expect([plain['gen_ai.output.type'], plain['gen_ai.tool.definitions']]).toEqual([undefined, undefined]);
    const unreachable = { models: undefined, model: 'scripted/unreachable', messages: [{ role: 'user' as const, content: 'x' }] };
    const chat = (await spansOf(callOf('', { request: unreachable }))).at(-1);
    expect(chat).toMatchObject({ errorType: 'router.provider_unavailable', attributes: { 'server.address': '127.0.0.1', 'server.port': 1 } });
  });

  it('fail with the code of the failure', async () => {
    const spans = await spansOf(callOf('!fail 500', { request: { model: 'unknown/model', messages: [{ role: 'user', content: 'x' }] } }));
    expect(spans.map(({ name, errorType }) => [name, errorType])).toEqual([['chat unknown/model', 'router.model_unknown']]);
  });

  it('have roles and sizes when content is redacted, and the content when it is not', async () => {
    const redacted = (await spansOf(callOf('Hello!'), 'redacted')).at(-1)?.attributes;
    await worker?.stop();
    const full = (await spansOf(callOf('Look at https://u:hush@host'), 'full')).at(-1)?.attributes;

    expect(JSON.parse(String(redacted?.['gen_ai.input.messages']))).toEqual([{ role: 'user', parts: [{ type: 'text', content: '[6 characters]' }] }]);
    expect(redacted?.['gen_ai.output.messages']).toMatch(
      /^\[\{"role":"assistant","parts":\[\{"type":"text","content":"\[\d+ characters\]"\}\],"finish_reason":"stop"\}\]$/,
    );
    expect(full?.['gen_ai.input.messages']).toContain('Look at https://[redacted]@host');
  });

  it('have the content of a stream, which is not stored otherwise', async () => {
    const call = callOf('!repeat 2 a b c', { want: 'frames' });
    const attributes = (await spansOf(call, 'full')).at(-1)?.attributes;
    expect(attributes?.['gen_ai.output.messages']).toContain('a b c a b c');
    expect(attributes?.['switchyard.deltas']).toBeGreaterThan(1);
  });
});

describe('a later delivery of a call', () => {
  const link = (delivery: number, mayBeSecond: boolean) => {
    const tracing = recordingTracing();
    const call = callOf('x', { callId: 'gen-1' });
    itemSpan(tracing, callTrace(call, { delivery, nowMs: 0 }, 'off'), { id: call.callId, number: delivery, mayBeSecond, parent: PARENT })?.end();
    return tracing.spans[0];
  };

  it('DESIGN 12: a redelivery is a separate span, in the same trace, linked to the delivery before', () => {
    const second = link(2, true);
    expect(second?.links).toEqual([contextBelow(PARENT, 'gen-1#1')]);
    expect(second?.spanId).toBe(spanIdOf('gen-1#2'));
    expect(spanReferenceIn(second?.traceparent)?.traceId).toBe(spanReferenceIn(PARENT)?.traceId);
    expect(link(3, true)?.links).toEqual([contextBelow(PARENT, 'gen-1#2')]);
  });

  it('is linked to one that failed earlier', async () => {
    const call = callOf('Hello!');
    await bus.work.publish('router.call', call.callId, JSON.stringify(call));
    let isReturned = false;
    const first = bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 30_000 }, async (item) => {
      await item.nak(500);
      isReturned = true;
    });
    await vi.waitFor(() => expect(isReturned).toBe(true), WAIT);
    await first.stop();
    const tracing = recordingTracing();
    let replays = 0;
    const replay: Bus['tokens']['replay'] = async (subject) => {
      replays += 1;
      if (replays === 1) throw new Error('the broker is away');
      return bus.tokens.replay(subject);
    };
    const tokens: Bus['tokens'] = { publish: (...frame) => bus.tokens.publish(...frame), subscribe: (...readers) => bus.tokens.subscribe(...readers), replay };
    worker = await startRouterWorker({ config, environment: {}, bus: { ...bus, tokens }, database, cache: null, log: silentLog, clock: systemClock, tracing });

    const chats = () => tracing.spans.filter(({ name }) => name.startsWith('chat'));
    await vi.waitFor(() => expect(chats().at(-1)?.errorType).toBeNull(), WAIT);
    const [failed, made] = chats().slice(-2);
    expect(failed?.errorType).toBe('internal');
    expect(made?.links).toEqual([failed?.traceparent]);
  });

  it('that is the first of a republished item does not reuse the first one’s id', () => {
    const again = link(1, true);
    expect(again?.links).toEqual([contextBelow(PARENT, 'gen-1#1')]);
    expect(again?.spanId).toBeUndefined();
    expect(link(1, false)?.links).toEqual([]);
  });
});
