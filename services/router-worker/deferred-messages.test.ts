import { createServer, type IncomingMessage, type Server } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { deferredCallBytes } from '#bus/messages/deferred-call.ts';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import type { ClientCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { ulid } from '#shared/ids.ts';
import { DeferredMessages } from '#shared/prompts/deferred-messages.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { startRouterWorker } from './service.ts';

const WAIT = { timeout: 60_000, interval: 5 };
const quiet = () => {};
const log: Log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
const LONG = 'x"\n'.repeat(20_000);
const MESSAGES = [
  { role: 'system' as const, content: 'é' },
  { role: 'user' as const, content: LONG },
];
/** As all upstreams of OpenAI's API get them. */
const JSON_OF_MESSAGES = JSON.stringify(MESSAGES);
const ANSWER = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const REFUSAL = '{"error":{"message":"Unsupported parameter: \'seed\'","param":"seed","code":"unsupported_parameter"}}';

describe('a long call with deferred messages', () => {
  let database: Database;
  let bus: Bus;
  let worker: { stop(): Promise<void> };
  let upstream: Server;
  /** As they arrived, by path. */
  let received: [string, string][];
  /** Statuses of the next answers. */
  let statuses: number[];
  const reads = vi.spyOn(DeferredMessages.prototype, 'read');

  beforeAll(async () => {
    database = await openTestDatabase();
    await migrate(database);
  });
  afterAll(() => database.close());

  beforeEach(async () => {
    received = [];
    statuses = [];
    upstream = createServer(async (request: IncomingMessage, response) => {
      received.push([request.url ?? '', await textOf(request)]);
      const status = statuses.shift() ?? 200;
      response.writeHead(status, { 'content-type': status === 200 ? 'text/event-stream' : 'application/json' }).end(status === 200 ? ANSWER : REFUSAL);
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    const address = upstream.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const at = (slug: string, kind: string) => ({ slug, kind, base_url: `http://127.0.0.1:${port}/${slug}` });
    const config = routerConfig.parse({
      providers: [at('passing', 'openai-compatible'), { ...at('rewriting', 'anthropic'), api_key: '${KEY}' }],
      models: [
        { id: 'a/one', endpoints: [{ provider: 'passing', upstream_model: 'one', context_length: 100_000, prices: { prompt: '1', completion: '2' } }] },
        { id: 'a/small', endpoints: [{ provider: 'passing', upstream_model: 'small', context_length: 4_000 }] },
        { id: 'a/two', endpoints: [{ provider: 'rewriting', upstream_model: 'two', max_completion_tokens: 100 }] },
        {
          id: 'a/both',
          endpoints: [
            { provider: 'passing', upstream_model: 'one' },
            { provider: 'passing', upstream_model: 'other' },
          ],
        },
      ],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    bus = await openMemoryBus({ database, clock: systemClock });
    worker = await startRouterWorker({ config, environment: { KEY: 'sk-1' }, bus, database, cache: null, log, clock: systemClock });
    reads.mockClear();
  });
  afterEach(async () => {
    await worker.stop();
    await bus.close();
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
  });

  /** Sends a call as a gateway does. @returns its terminal frame */
  async function run(fields: Partial<ChatRequest>, send: 'dispatch' | 'publish' = 'dispatch', messages = MESSAGES): Promise<Frame> {
    const callId = `gen-gw-${ulid()}`;
    const nowMs = systemClock.nowMs();
    const times = { deadlineAtMs: nowMs + 60_000, createdAtMs: nowMs };
    const call: ClientCall = {
      v: 1,
      callId,
      origin: 'gw',
      want: 'body',
      ...times,
      detached: false,
      republished: false,
      keyId: 'k',
      traceparent: null,
      maxTokens: null,
    };
    const bytes = deferredCallBytes(call, { ...fields, messages }, 1);
    if (bytes === null) throw new Error('not deferred');
    const frames: Frame[] = [];
    const reading = bus.tokens.subscribe(subjectOf(addresses.tokens, 'gw', callId), (_, received) => {
      const frame = readFrame(callId, received);
      if (frame?.kind === 'body') frames.push(frame);
    });
    await reading.ready();
    if (send === 'dispatch') bus.work.dispatch('router.call', callId, bytes);
    else await bus.work.publish('router.call', callId, bytes.toString(), 1);
    await vi.waitFor(() => expect(frames).toHaveLength(1), WAIT);
    await reading.stop();
    return frames[0] as Frame;
  }

  it('reaches an upstream that takes them as they are, and is not parsed', async () => {
    const frame = await run({ model: 'a/one' });
    expect(frame).toMatchObject({ status: 200 });
    // The upstream has stated no usage.
    const { usage } = JSON.parse(Buffer.from(frame.kind === 'body' ? frame.body : []).toString());
    expect(usage.prompt_tokens).toBe(Math.ceil((LONG.length + 1) / 4));
    expect(received.map(([, body]) => body)).toEqual([`{"model":"one","messages":${JSON_OF_MESSAGES},"stream":true,"stream_options":{"include_usage":true}}`]);
    expect(reads).not.toHaveBeenCalled();
  });

  it('reaches it again without a parameter that it refuses', async () => {
    statuses = [400];
    expect(await run({ model: 'a/one', seed: 7 })).toMatchObject({ status: 200 });
    expect(received.map(([, body]) => [body.includes(JSON_OF_MESSAGES), body.includes('"seed":7')])).toEqual([
      [true, true],
      [true, false],
    ]);
    expect(reads).not.toHaveBeenCalled();
  });

  it('falls back to an upstream of another dialect, which gets them rewritten', async () => {
    statuses = [503, 503];
    await run({ models: ['a/one', 'a/two'] });
    expect(received.map(([path]) => path.split('/')[1])).toEqual(['passing', 'rewriting']);
    expect(received[0]?.[1]).toContain(JSON_OF_MESSAGES);
    const rewritten = JSON.parse(received[1]?.[1] ?? '');
    expect(JSON.stringify(rewritten.system)).toContain('é');
    expect(rewritten.messages[0].content[0].text ?? rewritten.messages[0].content).toBe(LONG);
  });

  it('is kept from an endpoint that is too small for it, by their size', async () => {
    expect(await run({ models: ['a/small', 'a/one'] })).toMatchObject({ status: 200 });
    expect(JSON.parse(received[0]?.[1] ?? '').model).toBe('one');
    expect(await run({ model: 'a/small' })).not.toMatchObject({ status: 200 });
    expect(received).toHaveLength(1);
    expect(reads).not.toHaveBeenCalled();
  });

  it.each([{ session_id: 's' }, { prompt_cache_key: 'c' }])(
    'of a conversation with a name is not parsed to find the endpoint before it',
    async (conversation) => {
      for (let turn = 0; turn < 2; turn += 1) expect(await run({ model: 'a/both', ...conversation })).toMatchObject({ status: 200 });
      expect(received).toHaveLength(2);
      expect(reads).not.toHaveBeenCalled();
    },
  );

  it.each([
    ['the queue', MESSAGES],
    ['the queue, as a blob', [...MESSAGES, { role: 'user' as const, content: 'y'.repeat(600_000) }]],
  ])('is parsed whole when it comes by %s', async (_, messages) => {
    expect(await run({ model: 'a/both' }, 'publish', messages)).toMatchObject({ status: 200 });
    expect(received[0]?.[1]).toContain(JSON.stringify(messages));
    expect(reads).not.toHaveBeenCalled();
  });
});
