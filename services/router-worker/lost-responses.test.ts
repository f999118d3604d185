import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { bodyFrame, errorFrame, readFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { responses } from '#shared/surfaces/responses/surface.ts';
import { RecordedCalls } from './test-support/recorded-calls.ts';

const WAIT = { timeout: 60_000 };
/** Longer than the pause before a next delivery, and within the time for which frames are held. */
const AWAY_MS = 2_000;
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, prompt_tokens_details: { cached_tokens: 2 }, cost: 0.000_123 };

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

const callOf = (want: 'frames' | 'body' = 'frames') => calls.callOf('x'.repeat(40), { surface: 'responses', want });

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

async function diesAfter(call: RouterCall, frames: readonly Uint8Array[]): Promise<UsageRecord> {
  await calls.diesAfter(call, frames);
  return calls.recordOf(call);
}

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
    await vi.waitFor(async () => expect((await calls.framesOf(call)).at(-1)?.kind).toBe('error'), WAIT);
  });

  it('in the middle of its answer has failed, though its gateway, which gave it up, has aborted it', async () => {
    const call = callOf();
    const { address, writer, whole } = begun(call);
    await calls.start();
    calls.bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    calls.bus.tokens.publish(subjectOf(addresses.tokens, call.origin, call.callId), templateFrame(address, writer.template, whole('abcd')));
    await calls.publish(call, 1);

    expect(await calls.recordOf(call)).toMatchObject({ cancelled: false, finishReason: 'error' });
  });

  it('behind an error without content has failed, though its gateway has aborted it', async () => {
    const call = callOf();
    await calls.start();
    calls.bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    const failure = errorFrame({ callId: call.callId, attempt: 1, seq: 1 }, 502, '{"error":{"code":502,"message":"gone"}}', '');
    calls.bus.tokens.publish(subjectOf(addresses.tokens, call.origin, call.callId), failure);
    await calls.publish(call, 1);

    expect(await calls.recordOf(call)).toMatchObject({ cancelled: false, finishReason: 'error' });
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
    expect((await calls.framesOf(call)).map(({ kind }) => kind)).toEqual(['content', 'done']);
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

describe('a call whose worker publishes the end while its connection is away', () => {
  it('is ended by what was held, and not a second time by the next delivery', async () => {
    const call = calls.callOf('Hello!');
    const { tokens } = calls.bus;
    const publish = tokens.publish;
    let away: { subject: string; frame: Uint8Array }[] | null = null;
    calls.bus.isReady = () => away === null;
    tokens.publish = (subject, frame) => {
      if (readFrame(call.callId, frame)?.kind === 'done' && away === null) {
        away = [];
        setTimeout(() => {
          for (const one of away ?? []) publish(one.subject, one.frame);
          away = null;
        }, AWAY_MS);
      }
      if (away === null) publish(subject, frame);
      else away.push({ subject, frame });
    };
    await calls.start();
    await calls.publish(call);
    await calls.isSettled(call);

    const kinds = (await calls.framesOf(call)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'done' || kind === 'error')).toEqual(['done']);
    expect(calls.records.map(({ finishReason }) => finishReason)).not.toContain('error');
  });
});
