import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { bodyFrame, errorFrame, isLastFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { RecordedCalls } from './test-support/recorded-calls.ts';
import { recordedLog } from './test-support/recorded-log.ts';

const WAIT = { timeout: 60_000 };

let database: Database;
let calls: RecordedCalls;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  calls = new RecordedCalls(await openMemoryBus({ database, clock: systemClock }), database);
});
afterEach(() => calls.close());

describe('the usage record of a call', () => {
  it('names the caller, what answered, what was used and what it costs', async () => {
    await calls.start();
    const request = { messages: [{ role: 'user' as const, content: 'Hello!' }], user: 'u\0-1', session_id: 's-1', metadata: { team: 'blue' } };
    const call = calls.callOf('', { request });
    await calls.publish(call);
    const record = await calls.recordOf(call);
    expect(record).toMatchObject({
      ...{ keyId: 'k', reserved: false, kind: 'client', surface: 'chat-completions', createdAtMs: call.createdAtMs, streamed: true, cancelled: false },
      ...{ model: 'scripted/assistant', provider: 'local', providerName: 'Local', estimated: false, finishReason: 'stop' },
      ...{ user: 'u-1', sessionId: 's-1', metadata: { team: 'blue' } },
      attempts: [{ provider: 'local', model: 'scripted/assistant', status: 200, code: null, costNano: record.costNano }],
    });
    expect(record.tokens.completion).toBeGreaterThan(0);
    expect(record.costNano).toBe(1_000 * record.tokens.prompt + 2_000 * record.tokens.completion);
    expect(record.attempts[0]?.firstTokenMs).toEqual(expect.any(Number));
    expect(record.endedAtMs).toBeGreaterThanOrEqual(record.createdAtMs);
  });

  it('has each attempt, of which the caller pays the one that answered', async () => {
    await calls.start();
    const call = calls.callOf('!fail 500 on=primary');
    await calls.publish(call);
    const record = await calls.recordOf(call);
    expect(record.attempts).toMatchObject([
      { status: 502, code: 'router.provider_unavailable', firstTokenMs: null, costNano: 0 },
      { status: 200, code: null, costNano: record.costNano },
    ]);
  });

  it('bills what was shown of an answer that broke off, and nothing without content', async () => {
    await calls.start();
    const [cut, failed] = [calls.callOf('!fail cut after=2'), calls.callOf('!fail 500')];
    for (const call of [cut, failed]) await calls.publish(call);
    // "I am" and the prompt, at four characters per token.
    expect(await calls.recordOf(cut)).toMatchObject({ finishReason: 'error', estimated: true, tokens: { prompt: 5, completion: 1 }, costNano: 7_000 });
    expect(await calls.recordOf(failed)).toMatchObject({ finishReason: 'error', tokens: { prompt: 0, completion: 0 }, costNano: 0, attempts: [{}, {}] });
  });

  it('bills what a client had received when it left', async () => {
    await calls.start();
    const call = calls.callOf('!slow 5 !repeat 100000 a b c');
    await calls.publish(call);
    await vi.waitFor(async () => expect((await calls.framesOf(call)).length).toBeGreaterThan(1), WAIT);
    calls.bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    const record = await calls.recordOf(call);
    expect(record).toMatchObject({ cancelled: true, finishReason: null });
    expect(record.costNano).toBeGreaterThan(0);
  });

  it('is of a call that no endpoint was asked for, too', async () => {
    await calls.start();
    const call = calls.callOf('hi', { deadlineAtMs: systemClock.nowMs() - 1 });
    await calls.publish(call);
    expect(await calls.recordOf(call)).toMatchObject({ model: null, provider: null, attempts: [], costNano: 0, finishReason: 'error' });
  });

  it('is of an actor’s call, under its session, and is stored before the result', async () => {
    await calls.start();
    let store = () => {};
    calls.append = () => new Promise((resolve) => (store = resolve));
    const call = calls.callOf('Hello!', { want: 'none', reply: { sessionId: 'ses_9', ...actorFields('trn_1') } });
    await calls.publish(call);
    expect(await calls.recordOf(call)).toMatchObject({ kind: 'actor', sessionId: 'ses_9', streamed: false });
    await pause(50);
    expect((await database.query('select 1 as one from bus_work where message_id = $1', [call.callId])).rows).toHaveLength(1);
    store();
    await calls.isSettled(call);
  });
});

describe('the record and the terminal frame', () => {
  it('leave in this order without a reservation; the frame does not wait, and the item is not settled before the record is stored', async () => {
    await calls.start();
    let store = () => {};
    calls.append = () => new Promise((resolve) => (store = resolve));
    const call = calls.callOf('Hello!');
    await calls.publish(call);
    await vi.waitFor(() => expect(calls.events).toEqual(['record', 'end']), WAIT);
    await pause(50);
    expect((await database.query('select 1 as one from bus_work where message_id = $1', [call.callId])).rows).toHaveLength(1);
    store();
    await calls.isSettled(call);
  });

  it.each(['frames', 'body'] as const)('are one after the other with a reservation: the frame waits until the record is stored (%s)', async (want) => {
    await calls.start();
    let store = () => {};
    calls.append = () => new Promise((resolve) => (store = resolve));
    const call = calls.callOf('Hello!', { reserved: true, want });
    await calls.publish(call);
    expect(await calls.recordOf(call)).toMatchObject({ reserved: true });
    await pause(50);
    expect(calls.events).toEqual(['record']);
    store();
    await vi.waitFor(() => expect(calls.events).toEqual(['record', 'end']), WAIT);
  });

  it('come once the usage log accepts the record: it is appended again until then', async () => {
    await calls.start();
    let refusals = 2;
    calls.append = async () => {
      refusals -= 1;
      if (refusals >= 0) throw new Error('full');
    };
    const call = calls.callOf('Hello!', { reserved: true });
    await calls.publish(call);
    await vi.waitFor(() => expect(calls.events).toEqual(['record', 'record', 'record', 'end']), WAIT);
    expect(new Set(calls.records.map((record) => JSON.stringify(record))).size).toBe(1);
  });
});

it('a fault behind the record is logged, and the call is delivered again', async () => {
  const { log, lines } = recordedLog();
  const { tokens } = calls.bus;
  const { publish } = tokens;
  let faults = 1;
  tokens.publish = (subject, frame) => {
    if (isLastFrame(frame) && faults > 0) {
      faults -= 1;
      throw new TypeError('a frame that can not be published');
    }
    publish(subject, frame);
  };
  await calls.start(null, undefined, log);
  const call = calls.callOf('Hello!');
  await calls.publish(call);
  await calls.isSettled(call);
  const found = lines.filter(({ fields }) => fields.err instanceof TypeError).map(({ level, fields }) => [level, fields.call_id, fields.delivery]);
  expect(found).toEqual([['error', call.callId, 1]]);
});

describe('the tokens per minute of a key', () => {
  it('are corrected from the estimate of the gateway to what was used, in the minute of the call', async () => {
    const counts = new Map<string, number>();
    const real = memoryCache({ clock: systemClock });
    const cache: Cache = Object.assign(Object.create(real), {
      increment: async (key: string, by: number) => {
        counts.set(key, (counts.get(key) ?? 0) + by);
        return 0;
      },
    });
    await calls.start(cache);
    const [call, earlier] = [calls.callOf('Hello!', { countedTokens: 1_000 }), calls.callOf('Hello!', { countedTokens: 1_000, createdAtMs: 60_000 })];
    for (const one of [earlier, call]) await calls.publish(one);
    const records = [await calls.recordOf(call), await calls.recordOf(earlier)];
    const [{ createdAtMs, endedAtMs, tokens }] = records as [UsageRecord, UsageRecord];
    const isSameMinute = Math.floor(createdAtMs / 60_000) === Math.floor(endedAtMs / 60_000);
    const corrected = [[`rate:tokens:k:${Math.floor(createdAtMs / 60_000)}`, tokens.prompt + tokens.completion - 1_000]];
    await vi.waitFor(() => expect([...counts]).toEqual(isSameMinute ? corrected : []), WAIT);
  });

  it.each([
    ['cancelled', '!slow 5 !repeat 100000 a b c'],
    ['redelivered', 'Hello!'],
  ])('are corrected once for a %s call, which another worker may have ended, too', async (how, text) => {
    const counts = new Map<string, number>();
    const cache: Cache = Object.assign(Object.create(memoryCache({ clock: systemClock })), {
      increment: async (key: string, by: number) => {
        counts.set(key, (counts.get(key) ?? 0) + by);
        return counts.get(key);
      },
    });
    await calls.start(cache);
    const run = async (call: RouterCall) => {
      await calls.publish(call, how === 'redelivered' ? 1 : 0);
      if (how === 'cancelled') {
        await vi.waitFor(async () => expect((await calls.framesOf(call)).length).toBeGreaterThan(1), WAIT);
        calls.bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
      }
      await calls.isSettled(call);
      return calls.recordOf(call);
    };
    const [ended, open] = [calls.callOf(text, { countedTokens: 1_000_000 }), calls.callOf(text, { countedTokens: 1_000 })];
    // By another worker.
    counts.set(`rate:corrected:${ended.callId}`, 1);
    await run(ended);
    const { createdAtMs, endedAtMs, tokens } = await run(open);
    const counter = `rate:tokens:k:${Math.floor(createdAtMs / 60_000)}`;
    const isSameMinute = Math.floor(createdAtMs / 60_000) === Math.floor(endedAtMs / 60_000);
    await vi.waitFor(() => expect(counts.get(counter)).toEqual(isSameMinute ? tokens.prompt + tokens.completion - 1_000 : undefined), WAIT);
  });

  it('are not corrected again for a call whose terminal frame is published: its worker has done so', async () => {
    const increment = vi.fn(async () => 1);
    const cache: Cache = Object.assign(Object.create(memoryCache({ clock: systemClock })), { increment });
    const call = calls.callOf('Hello!', { countedTokens: 1_000, want: 'body' });
    const body = { model: 'scripted/assistant', provider: 'Local', usage: { prompt_tokens: 1, completion_tokens: 2, cost: 0.000_005 } };
    await calls.diesAfter(call, [bodyFrame(200, JSON.stringify(body))], cache);
    await calls.isSettled(call);
    expect(await calls.recordOf(call)).toMatchObject({ costNano: 5_000 });
    expect(increment).not.toHaveBeenCalled();
  });
});

describe('a reserved call', () => {
  it('is never served by an endpoint without prices', async () => {
    await calls.start();
    const request = { messages: [{ role: 'user' as const, content: 'hi' }], model: 'scripted/unpriced' };
    const call = calls.callOf('', { request, reserved: true, want: 'body' });
    await calls.publish(call);
    await calls.recordOf(call);
    const [frame] = await vi.waitFor(async () => {
      const frames = await calls.framesOf(call);
      expect(frames).toHaveLength(1);
      return frames;
    }, WAIT);
    expect(frame).toMatchObject({ kind: 'body', status: 503 });
    expect(JSON.parse(Buffer.from((frame as { body: Uint8Array }).body).toString('utf8'))).toMatchObject({
      error: { metadata: { excluded_by: [{ filter: 'unpriced', endpoints: ['scripted/unpriced@local'] }] } },
    });
    const open = calls.callOf('', { request });
    await calls.publish(open);
    expect(await calls.recordOf(open)).toMatchObject({ costNano: 0, model: 'scripted/unpriced', attempts: [{ costNano: null }] });
  });
});

describe('a call whose worker died', () => {
  const chunk = (delta: object) =>
    `data: {"id":"x","model":"scripted/assistant","provider":"Local","choices":[{"index":0,"delta":${JSON.stringify(delta)}}]}\n\n`;
  const template = { prefix: 'data: {"model":"scripted/assistant","provider":"Local","choices":[{"index":0,"delta":{"content":', suffix: '}}]}\n\n' };
  const addressOf = ({ callId }: RouterCall) => ({ callId, attempt: 1, seq: 1 });

  it('in the middle of its answer is billed by the characters that are retained', async () => {
    const call = calls.callOf('x'.repeat(40));
    const address = addressOf(call);
    await calls.diesAfter(call, [
      templateFrame(address, template, chunk({ role: 'assistant', content: 'abcd' })),
      textFrame({ ...address, seq: 2 }, JSON.stringify('é\nfgh')),
      textFrame({ ...address, seq: 3 }, JSON.stringify('ijkl')),
    ]);
    expect(await calls.recordOf(call)).toMatchObject({
      ...{ model: 'scripted/assistant', provider: 'local', providerName: 'Local', estimated: true, finishReason: 'error', attempts: [] },
      ...{ tokens: { prompt: 10, completion: 4 }, costNano: 18_000 },
    });
    await vi.waitFor(async () => expect((await calls.framesOf(call)).at(-1)?.kind).toBe('error'), WAIT);
  });

  it('behind its terminal frame is billed what the frame states, and gets no second one', async () => {
    const call = calls.callOf('hi');
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, prompt_tokens_details: { cached_tokens: 2 }, cost: 0.000_123 };
    const address = addressOf(call);
    await calls.diesAfter(call, [
      templateFrame(address, template, chunk({ content: 'abcd' })),
      sseFrame(
        'd',
        { ...address, seq: 2 },
        `data: {"model":"scripted/assistant","provider":"Local","choices":[],"usage":${JSON.stringify(usage)}}\n\ndata: [DONE]\n\n`,
      ),
    ]);
    expect(await calls.recordOf(call)).toMatchObject({
      costNano: 123_000,
      tokens: { prompt: 5, completion: 7, cached: 2 },
      provider: 'local',
      estimated: false,
    });
    await calls.isSettled(call);
    expect((await calls.framesOf(call)).map(({ kind }) => kind)).toEqual(['content', 'done']);
  });

  it.each([
    [200, { model: 'scripted/assistant', provider: 'Local', usage: { prompt_tokens: 1, completion_tokens: 2, cost: 0.000_005 } }, 5_000],
    // Of vectors.
    [200, { model: 'scripted/assistant', provider: 'Local', data: [], usage: { prompt_tokens: 9, total_tokens: 9, cost: 0.000_007 } }, 7_000],
    [502, { error: { code: 502 } }, 0],
  ])('behind a whole body of status %i is billed what the body states', async (status, body, costNano) => {
    const call = calls.callOf('hi', { want: 'body' });
    await calls.diesAfter(call, [bodyFrame(status, JSON.stringify(body))]);
    expect(await calls.recordOf(call)).toMatchObject({ costNano });
    await calls.isSettled(call);
  });

  it('behind the error of another worker, which has no provider, is billed at the prices of the endpoint that was shown', async () => {
    const call = calls.callOf('x'.repeat(40));
    const address = addressOf(call);
    const error = { code: 502, message: 'the worker died in the middle of the answer' };
    const event = `data: {"model":"scripted/assistant","provider":"Switchyard","error":${JSON.stringify(error)},"choices":[]}\n\n`;
    await calls.diesAfter(call, [
      templateFrame(address, template, chunk({ role: 'assistant', content: 'abcd' })),
      errorFrame({ ...address, attempt: 2 }, 502, JSON.stringify({ error }), event),
    ]);
    expect(await calls.recordOf(call)).toMatchObject({ provider: 'local', tokens: { prompt: 10, completion: 1 }, costNano: 12_000 });
    await calls.isSettled(call);
  });

  it('before any content is executed again, with one record', async () => {
    const call = calls.callOf('Hello!');
    await calls.diesAfter(call, []);
    expect(await calls.recordOf(call)).toMatchObject({ finishReason: 'stop' });
    await calls.isSettled(call);
  });
});
