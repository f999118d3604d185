import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { errorFrame, templateFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { readRecordOf } from '../ledger/test-support/usage-records.ts';
import { RecordedCalls } from '../test-support/recorded-calls.ts';
import { WRITE_INTERIM } from './interim-sql.ts';

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

async function hasUsed(call: RouterCall, completion: number, more: Partial<UsageRecord['tokens']> = {}, searched: Partial<UsageRecord> = {}): Promise<void> {
  const tokens = { prompt: 10, completion, reasoning: 0, cached: 0, cacheWrite: 0, ...more };
  const served = { model: 'scripted/assistant', provider: 'local', providerName: 'Local' };
  const { body } = readRecordOf(call.callId, { ...served, tokens, costNano: 10_000 + 2_000 * completion, keyId: 'k', estimated: true, ...searched });
  await database.query(WRITE_INTERIM, [[call.callId], body, 60_000]);
}

const shown = ({ callId }: RouterCall) => {
  const head = '"model":"scripted/assistant","provider":"Local"';
  const template = { prefix: `data: {${head},"choices":[{"index":0,"delta":{"content":`, suffix: '}}]}\n\n' };
  return templateFrame({ callId, attempt: 1, seq: 1 }, template, `${template.prefix}"abcdefgh"${template.suffix}`);
};

describe('an interim record', () => {
  it('is written of a stream that runs for seconds, with the fields of its usage record', async () => {
    await calls.start();
    const call = calls.callOf('!slow 5 !repeat 100000 a b c', { reserved: true });
    await calls.publish(call);
    const record = await vi.waitFor(async () => {
      const { rows } = await database.query<{ record: object }>('select record from interim_records where generation_id = $1', [call.callId]);
      expect(rows).toHaveLength(1);
      return rows[0]?.record;
    }, WAIT);
    expect(record).toMatchObject({
      ...{ generationId: call.callId, keyId: 'k', reserved: true, model: 'scripted/assistant', provider: 'local', providerName: 'Local' },
      ...{ estimated: true, finishReason: 'error', tokens: { prompt: 7, completion: expect.any(Number) }, costNano: expect.any(Number) },
    });
    expect((record as { costNano: number }).costNano).toBeGreaterThan(7_000);
    calls.bus.notices.publish(subjectOf(addresses.control, call.callId), '{"abort":true}');
    expect(await calls.recordOf(call)).toMatchObject({ cancelled: true });
  });

  it('DESIGN 8: bills a call whose frames are lost with the broker: it is not executed again, and its client gets the error', async () => {
    const call = calls.callOf('x'.repeat(40));
    await hasUsed(call, 4);
    await calls.diesAfter(call, []);
    expect(await calls.recordOf(call)).toMatchObject({
      ...{ model: 'scripted/assistant', provider: 'local', providerName: 'Local', attempts: [], finishReason: 'error', estimated: true },
      ...{ tokens: { prompt: 10, completion: 4 }, costNano: 18_000 },
    });
    await vi.waitFor(async () => expect((await calls.framesOf(call)).map(({ kind }) => kind)).toEqual(['error']), WAIT);
    await calls.isSettled(call);
  });

  it('counts also where another worker has ended the call, whose record may not be stored', async () => {
    const call = calls.callOf('x'.repeat(40));
    await hasUsed(call, 4);
    const error = JSON.stringify({ error: { code: 502, message: 'the worker died in the middle of the answer' } });
    await calls.diesAfter(call, [errorFrame({ callId: call.callId, attempt: 2, seq: 1 }, 502, error, `data: ${error}\n\n`)]);
    expect(await calls.recordOf(call)).toMatchObject({ costNano: 18_000, provider: 'local' });
  });

  it('bills a call whose deadline is over before another worker gets it', async () => {
    const call = calls.callOf('x'.repeat(40), { deadlineAtMs: Date.now() - 1 });
    await hasUsed(call, 4);
    await calls.diesAfter(call, []);
    expect(await calls.recordOf(call)).toMatchObject({ costNano: 18_000, attempts: [] });
  });

  it.each([
    [9, 28_000],
    [1, 14_000],
  ])('of %i tokens counts where it has more than the frames that are retained', async (completion, costNano) => {
    const call = calls.callOf('x'.repeat(40));
    await hasUsed(call, completion);
    await calls.diesAfter(call, [shown(call)]);
    expect(await calls.recordOf(call)).toMatchObject({ costNano, provider: 'local', attempts: [] });
  });

  it('counts with the prompt that the upstream had stated, also where the frames have more of the answer', async () => {
    const call = calls.callOf('x'.repeat(40));
    const stated = { prompt: 5_000, cached: 4_000, cacheWrite: 300, cacheWrite1h: 200 };
    await hasUsed(call, 1, stated);
    await calls.diesAfter(call, [shown(call)]);
    expect(await calls.recordOf(call)).toMatchObject({ tokens: { ...stated, completion: 2 }, costNano: 14_000, estimated: true });
  });

  it.each<[string, Partial<UsageRecord>]>([
    ['an engine of the router', { searches: 1, searchEngine: 'engine', searchResults: 3 }],
    ['the provider', { searches: 2, searchEngine: 'native' }],
  ])('has the searches by %s, which no frame states', async (_, searched) => {
    const call = calls.callOf('x'.repeat(40));
    await hasUsed(call, 1, {}, searched);
    await calls.diesAfter(call, [shown(call)]);
    const record = await calls.recordOf(call);
    expect(record).toMatchObject({ ...searched, costNano: 14_000 });
    expect(record.searchResults).toBe(searched.searchResults);
  });
});
