import { createServer } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { systemClock } from '#shared/clock.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { startRouterWorker } from './service.ts';
import { testNoticeBoard } from './test-support/notice-board.ts';

const MIB = 1024 * 1024;
const WAIT = { timeout: 60_000, interval: 5 };
const quiet = () => {};
const log: Log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

describe('a worker with delivered calls', () => {
  let isReady = true;
  let frames: Frame[];
  let worker: { stop(): Promise<void> } | null = null;
  let handle: (item: WorkItem) => Promise<void>;

  afterEach(async () => {
    await worker?.stop();
    worker = null;
    isReady = true;
  });

  const notUsed = () => {
    throw new Error('not used here');
  };
  const database: Database = { query: notUsed, transaction: notUsed, close: notUsed };

  /** A worker fed by the test, so that nothing else keeps the items' texts in memory, and without a database. */
  async function start(config: RouterConfig, clientBytes: number): Promise<void> {
    frames = [];
    const bus: Bus = {
      commands: { append: notUsed, read: notUsed, at: notUsed, lastOf: notUsed, state: notUsed, purge: notUsed },
      work: {
        publish: notUsed,
        dispatch: notUsed,
        maxDispatchBytes: notUsed,
        onRefused: notUsed,
        onStored: notUsed,
        earliestDispatchAtMs: 0,
        consume: (kind, _, handler) => {
          if (kind === 'router.call') handle = handler;
          return { stop: async () => {} };
        },
        createdAtMs: notUsed,
        onRestart: notUsed,
        depths: notUsed,
      },
      notices: testNoticeBoard(),
      tokens: {
        publish: (subject, bytes) => {
          const frame = readFrame(subject.slice(subject.lastIndexOf('.') + 1), bytes);
          if (frame !== null) frames.push(frame);
        },
        subscribe: notUsed,
        replay: async () => [],
      },
      blobs: { put: notUsed, get: notUsed },
      usage: { append: async () => {}, consume: () => ({ stop: async () => {} }), backlog: notUsed },
      isReady: () => isReady,
      connectionNumber: () => 1,
      flush: () => {},
      hasCapacity: () => true,
      onReconnect: () => ({ stop: async () => {} }),
      close: async () => {},
    };
    const bodyBytes = { clientCalls: clientBytes, turnCalls: clientBytes };
    worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log, clock: systemClock, bodyBytes, drainTimeoutMs: 0 });
  }

  /** Delivers a call. @returns how its item is settled */
  function deliver(text: string, delivery = 1): { settled: string[]; done: Promise<void> } {
    const nowMs = systemClock.nowMs();
    const settled: string[] = [];
    const call: RouterCall = {
      v: 1,
      callId: `call-${delivery}`,
      origin: 'gw',
      want: 'body',
      deadlineAtMs: nowMs + 60_000,
      createdAtMs: nowMs,
      detached: true,
      republished: false,
      keyId: 'k',
      traceparent: null,
      maxTokens: null,
      request: { messages: [{ role: 'user', content: text }] },
      reply: null,
    };
    const done = handle({
      messageId: call.callId,
      body: JSON.stringify(call),
      deliveryCount: delivery,
      publishedAtMs: nowMs,
      ack: async () => void settled.push('ack'),
      nak: async (delayMs) => void settled.push(`nak ${delayMs}`),
      term: async (reason) => void settled.push(`term ${reason}`),
      working: async () => {},
    });
    return { settled, done };
  }

  const scripted = routerConfig.parse({
    providers: [{ slug: 'local', kind: 'scripted' }],
    models: [{ id: 'scripted/assistant', endpoints: [{ provider: 'local', upstream_model: 'a' }] }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const SILENT = '!fail timeout';

  it('leaves a client’s call to the next delivery when its answer was lost since the bus was away', async () => {
    await start(scripted, 1_000);
    isReady = false;
    const newFollowed = deliver('Hello!');
    await newFollowed.done;
    expect(newFollowed.settled).toEqual(['nak 1000']);

    isReady = true;
    const received = deliver('Hello!', 2);
    await received.done;
    expect(received.settled).toEqual(['ack']);
  });

  it('naks a call beyond the budget, with a longer delay each time, and refuses it in the end', async () => {
    await start(scripted, 1_000);
    const inFlight = deliver(SILENT);
    for (const [delivery, expected] of [
      [1, 'nak 1000'],
      [2, 'nak 2000'],
      [3, 'nak 4000'],
    ] as const) {
      const { settled, done } = deliver('x'.repeat(1_000), delivery);
      await done;
      expect(settled).toEqual([expected]);
    }
    expect(frames).toEqual([]);
    const { settled, done } = deliver('x'.repeat(1_000), 4);
    await done;
    expect(settled).toEqual(['ack']);
    const [frame] = frames;
    expect(frame).toMatchObject({ kind: 'body', status: 503 });
    const body: unknown = frame?.kind === 'body' ? JSON.parse(Buffer.from(frame.body).toString('utf8')) : null;
    expect(body).toMatchObject({ error: { code: 503, type: 'provider_overloaded', metadata: { retry_after: 1 } } });
    expect(inFlight.settled).toEqual([]);
  });

  it('accepts the next call once one has ended', async () => {
    await start(scripted, 1_000);
    await deliver('x'.repeat(1_000)).done;
    const { settled, done } = deliver('x'.repeat(1_000));
    await done;
    expect(settled).toEqual(['ack']);
  });

  it('holds one copy of each request before the upstream’s first token, and while it streams', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const speaks: (() => void)[] = [];
    const upstream = createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        speaks.push(() => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n');
        });
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    const address = upstream.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const remote = { slug: 'remote', kind: 'openai-compatible', base_url: `http://127.0.0.1:${port}/v1` };
    const models = [{ id: 'a/b', endpoints: [{ provider: 'remote', upstream_model: 'b' }] }];
    await start(routerConfig.parse({ ...scripted, providers: [remote], models }), 256 * MIB);
    const held = () => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = held();
    const calls = 4;
    const bytes = 8 * MIB;
    const given = Array.from({ length: calls }, (_, index) => deliver(`${index}`.padEnd(bytes, 'ab')));
    const copies = () => (held() - before) / (calls * bytes);
    // Bytes may be counted here for a moment after they have arrived upstream.
    await vi.waitFor(() => expect(speaks).toHaveLength(calls), WAIT);
    await vi.waitFor(() => expect(copies()).toBeLessThan(1.6), WAIT);
    for (const speak of speaks) speak();
    await vi.waitFor(() => expect(copies()).toBeLessThan(1.6), WAIT);
    expect(given.flatMap(({ settled }) => settled)).toEqual([]);
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
  });
});
