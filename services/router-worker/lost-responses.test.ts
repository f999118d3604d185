import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { bodyFrame, readFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { type UsageRecord, usageRecord } from '#bus/messages/usage.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { responses } from '#shared/surfaces/responses/surface.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { startRouterWorker } from './service.ts';

const WAIT = { timeout: 30_000 };
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [{ id: 'scripted/assistant', endpoints: [{ provider: 'local', upstream_model: 'primary', prices: { prompt: '1', completion: '2' } }] }],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, prompt_tokens_details: { cached_tokens: 2 }, cost: 0.000_123 };

let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> } | null = null;
let records: UsageRecord[];

beforeAll(async () => {
  database = await openTestDatabase();
}, 60_000);
afterAll(() => database.close());
beforeEach(async () => {
  records = [];
  const real = await openMemoryBus({ database, clock: systemClock });
  bus = {
    ...real,
    usage: {
      ...{ consume: (...args) => real.usage.consume(...args), backlog: () => real.usage.backlog() },
      append: async (_, body) => void records.push(usageRecord.parse(JSON.parse(body))),
    },
  };
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
  await bus.close();
});

function callOf(want: 'frames' | 'body' = 'frames'): RouterCall {
  const nowMs = systemClock.nowMs();
  return {
    ...{ v: 1, callId: `gen-gw-${ulid()}`, origin: 'gw', want, surface: 'responses', deadlineAtMs: nowMs + 30_000, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId: 'k', traceparent: null, maxTokens: null, reply: null },
    request: { messages: [{ role: 'user', content: 'x'.repeat(40) }] },
  };
}

function begun({ callId, request }: RouterCall) {
  const answer = emptyAnswer();
  const head = { id: callId, created: 7, model: 'scripted/assistant', provider: 'Local', request, now: () => 9 };
  const writer = responses.partWriter(head, answer);
  const text = (it: string): ProviderPart[] => [{ type: 'text-delta', text: it }];
  const add = (parts: ProviderPart[]) => {
    for (const part of parts) addPart(answer, part);
    return parts;
  };
  return {
    address: { callId, attempt: 1, seq: 1 },
    head,
    answer,
    writer,
    whole: (it: string) => writer.parts(add(text(it))),
    between: (it: string) => writer.text(add(text(it))) ?? '',
  };
}

/** Its worker has published these frames and died. */
async function diesAfter(call: RouterCall, frames: readonly Uint8Array[]): Promise<UsageRecord> {
  for (const frame of frames) bus.tokens.publish(subjectOf(addresses.tokens, call.origin, call.callId), frame);
  await bus.work.publish('router.call', call.callId, JSON.stringify(call), 1);
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log: silentLog, clock: systemClock });
  await vi.waitFor(() => expect(records).toHaveLength(1), WAIT);
  return records[0] as UsageRecord;
}

const framesOf = async ({ callId, origin }: RouterCall) =>
  (await bus.tokens.replay(subjectOf(addresses.tokens, origin, callId))).flatMap((bytes) => readFrame(callId, bytes) ?? []);

describe('a call of /responses whose worker died', () => {
  it('in the middle of its answer is billed by the characters that are retained', async () => {
    const call = callOf();
    const { address, writer, whole, between } = begun(call);
    const first = whole('abcd');
    const frames = [templateFrame(address, writer.template, first), textFrame({ ...address, seq: 2 }, between('é\nfgh'))];
    expect(await diesAfter(call, frames)).toMatchObject({
      ...{ surface: 'responses', model: 'scripted/assistant', provider: 'local', estimated: true, finishReason: 'error' },
      ...{ tokens: { prompt: 10, completion: 3 }, costNano: 16_000 },
    });
    await vi.waitFor(async () => expect((await framesOf(call)).at(-1)?.kind).toBe('error'), WAIT);
  });

  it('is billed at the prices of its endpoint also when its first frame has expired', async () => {
    const call = callOf();
    const { address, writer, whole, between } = begun(call);
    whole('abcd');
    void writer.template;
    const again = whole('efgh');
    const frames = [templateFrame({ ...address, seq: 700 }, writer.template, again), textFrame({ ...address, seq: 701 }, between('ijkl'))];
    expect(await diesAfter(call, frames)).toMatchObject({ provider: 'local', tokens: { prompt: 10, completion: 2 }, costNano: 14_000 });
  });

  it('behind its terminal frame is billed what the frame states, and gets no second one', async () => {
    const call = callOf();
    const { address, answer, writer, whole } = begun(call);
    const first = whole('abcd');
    addPart(answer, { type: 'finish', reason: 'stop', nativeReason: 'stop' });
    const frames = [templateFrame(address, writer.template, first), sseFrame('d', { ...address, seq: 2 }, writer.done(answer, usage))];
    expect(await diesAfter(call, frames)).toMatchObject({
      costNano: 123_000,
      tokens: { prompt: 5, completion: 7, cached: 2 },
      provider: 'local',
      estimated: false,
    });
    expect((await framesOf(call)).map(({ kind }) => kind)).toEqual(['content', 'done']);
  });

  it('behind a whole body is billed what the body states', async () => {
    const call = callOf('body');
    const { head, answer } = begun(call);
    expect(await diesAfter(call, [bodyFrame(200, responses.wholeBody(answer, head, usage))])).toMatchObject({ costNano: 123_000, provider: 'local' });
  });

  it('before any content is executed again', async () => {
    expect(await diesAfter(callOf(), [])).toMatchObject({ finishReason: 'stop', surface: 'responses' });
  });
});
