import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { readFrame } from '#bus/messages/frame.ts';
import { EVALUATION_CALL_PREFIX, type RouterCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { startRouterWorker } from './service.ts';

const WAIT = { timeout: 60_000 };
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [
    {
      id: 'scripted/assistant',
      endpoints: ['primary', 'spare'].map((name) => ({ provider: 'local', upstream_model: name, prices: { prompt: '1', completion: '2' } })),
    },
    { id: 'scripted/unpriced', endpoints: [{ provider: 'local', upstream_model: 'unpriced' }] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});

let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> } | null = null;
let lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
});

async function start(log: Partial<Log> = {}): Promise<void> {
  lines = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, message, fields });
  const recording: Log = { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), ...log };
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log: recording, clock: systemClock });
}

async function publish(text: string, fields: Partial<RouterCall> = {}): Promise<RouterCall> {
  const nowMs = systemClock.nowMs();
  const call: RouterCall = {
    v: 1,
    callId: `gen-gw-${ulid()}`,
    origin: 'gw',
    want: 'frames',
    deadlineAtMs: nowMs + 30_000,
    createdAtMs: nowMs,
    detached: false,
    republished: false,
    keyId: 'k',
    traceparent: null,
    maxTokens: null,
    request: { messages: [{ role: 'user', content: text }], model: 'scripted/assistant' },
    reply: null,
    ...fields,
  };
  await bus.work.publish('router.call', call.callId, JSON.stringify(call));
  return call;
}

const framesOf = async ({ callId, origin }: RouterCall) =>
  (await bus.tokens.replay(subjectOf(addresses.tokens, origin, callId))).flatMap((bytes) => readFrame(callId, bytes) ?? []);

const linesOf = ({ callId }: RouterCall, message: string) => lines.filter((line) => line.message === message && line.fields.call_id === callId);

/** The log line of an ended call. */
async function lineOf(call: RouterCall): Promise<Record<string, unknown>> {
  await vi.waitFor(() => expect(linesOf(call, 'a router call has ended')).not.toEqual([]), WAIT);
  const [line, ...more] = linesOf(call, 'a router call has ended');
  expect(more).toEqual([]);
  expect(line?.level).toBe('info');
  expect(line?.fields.duration_ms).toEqual(expect.any(Number));
  return line?.fields ?? {};
}

describe('the line of a call', () => {
  it('DESIGN 12: has the provider that answered, the number of tries, usage and cost, and the end', async () => {
    await start();
    const line = await lineOf(await publish('Hello!'));
    expect(line).toMatchObject({ model: 'scripted/assistant', provider: 'local', attempts: 1, finish: 'stop', delivery: 1, key_id: 'k' });
    expect(line.completion_tokens).toBeGreaterThan(5);
    expect(line.cost_usd).toBeCloseTo((Number(line.prompt_tokens) + 2 * Number(line.completion_tokens)) / 1_000_000, 12);
    expect(line).not.toHaveProperty('code');

    const unpriced = await publish('Hello!', { request: { messages: [{ role: 'user', content: 'Hello!' }], model: 'scripted/unpriced' } });
    expect(await lineOf(unpriced)).toMatchObject({ model: 'scripted/unpriced', cost_usd: null });
  });

  it('is for debugging alone when a host evaluates its documents', async () => {
    await start();
    const call = await publish('Hello!', { callId: `${EVALUATION_CALL_PREFIX}-${ulid()}` });
    await vi.waitFor(() => expect(linesOf(call, 'a router call has ended')).toMatchObject([{ level: 'debug', fields: { finish: 'stop' } }]), WAIT);
  });

  it('counts the tries; each failed one has its own warning', async () => {
    await start();
    const call = await publish('!fail 500 on=primary');
    expect(await lineOf(call)).toMatchObject({ attempts: 2, strategy: 'weighted', finish: 'stop' });
    const fields = { model: 'scripted/assistant', provider: 'local', attempt: 1, status: 500, reason: 'it answered 500', code: 'router.provider_unavailable' };
    expect(linesOf(call, 'an attempt of a router call failed')).toMatchObject([{ level: 'warn', fields }]);
  });

  it.each([
    ['!fail connect', {}, { attempts: 2, finish: 'failed', code: 'router.provider_unavailable', prompt_tokens: 0, completion_tokens: 0 }],
    ['!fail cut after=3', {}, { attempts: 1, finish: 'error', code: 'router.provider_unavailable', cost_usd: 0.000_015 }],
    ['late', { deadlineAtMs: 1 }, { attempts: 0, finish: 'timeout', code: 'router.timeout', provider: null }],
    [
      'unknown',
      { request: { messages: [{ role: 'user' as const, content: 'hi' }], model: 'x/none' } },
      { attempts: 0, strategy: null, finish: 'failed', code: 'router.model_unknown', model: 'x/none' },
    ],
  ])('has the failure of a call: %s', async (text, fields, expected) => {
    await start();
    expect(await lineOf(await publish(text, fields))).toMatchObject(expected);
  });

  it('has the disconnect of the client, and what had come until then', async () => {
    await start();
    const call = await publish('!slow 5 !repeat 100000 a b c');
    await vi.waitFor(async () => expect((await framesOf(call)).length).toBeGreaterThan(1), WAIT);
    bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    const line = await lineOf(call);
    expect(line).toMatchObject({ attempts: 1, finish: 'cancelled', code: 'router.cancelled', provider: 'local' });
    expect(line.completion_tokens).toBeGreaterThan(0);
  });

  it('is not built where the level leaves it out', async () => {
    await start({ writes: (level) => level !== 'info' });
    const call = await publish('Hello!');
    await vi.waitFor(async () => expect((await framesOf(call)).at(-1)?.kind).toBe('done'), WAIT);
    await worker?.stop();
    worker = null;
    expect(lines).toEqual([]);
  });
});
