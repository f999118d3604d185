import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { systemClock } from '#shared/clock.ts';
import { mintGenerationId } from '#shared/generation-id.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';
import { HOUSE_SECRET } from '../test-support/harness.ts';
import { storeUsage, usageRecordOf } from '../test-support/usage-rows.ts';

let database: Database;
let bus: Bus;
let opened: AccountApp;
const clock = { nowMs: () => Date.parse('2026-11-22T12:00:00Z') };

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  await database.query('truncate usage_ledger');
  opened = openAccountApp({ database, bus, clock, limits: { generationWaitMs: 20, generationPollMs: 1 } });
  return () => opened.close();
});

const idOf = (keyId: string) => mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gtest', keyId, nowMs: clock.nowMs() });
const ask = (keyId: string, id: string) => opened.asKey(keyId)('GET', `/generation?id=${encodeURIComponent(id)}`);

async function stored(keyId: string, more: Partial<UsageRecord> = {}): Promise<string> {
  const generationId = idOf(keyId);
  await storeUsage(database, usageRecordOf({ generationId, keyId, ...more }));
  return generationId;
}

describe('GET /generation', () => {
  it('has all fields of a call that has ended', async () => {
    const id = await stored('plain');

    const response = await ask('plain', id);

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      data: {
        id,
        upstream_id: 'chatcmpl-1',
        model: 'acme/large',
        provider_name: 'East',
        created_at: '2026-11-22T11:59:00.000Z',
        streamed: true,
        cancelled: false,
        finish_reason: 'stop',
        native_finish_reason: 'end_turn',
        latency: 450,
        generation_time: 1_500,
        moderation_latency: null,
        tokens_prompt: 100,
        tokens_completion: 20,
        native_tokens_prompt: 100,
        native_tokens_completion: 20,
        native_tokens_reasoning: 5,
        native_tokens_cached: 10,
        native_tokens_cache_write: 30,
        native_tokens_cache_write_1h: 20,
        native_tokens_completion_images: null,
        num_media_prompt: null,
        num_media_completion: null,
        num_input_audio_prompt: null,
        num_search_results: null,
        num_searches: null,
        num_fetches: null,
        total_cost: 0.0012,
        usage: 0.0012,
        cache_discount: null,
        upstream_inference_cost: null,
        is_byok: false,
        origin: '',
        http_referer: null,
        user_agent: null,
        app_id: null,
        external_user: 'customer-1',
        api_type: 'completions',
        router: null,
        provider_responses: [
          { provider_name: 'West', model_permaslug: 'acme/large', status: 502, error_type: 'provider_unavailable', generation_time: 300, is_byok: false },
          { provider_name: 'East', model_permaslug: 'acme/large', status: 200, latency: 150, generation_time: 1_200, is_byok: false },
        ],
        session_id: 'conversation-1',
        request_id: null,
        service_tier: 'standard',
        web_search_engine: null,
        preset_id: null,
        workspace_id: 'default',
        data_region: 'global',
        response_cache_source_id: null,
        metadata: { shop: 'north' },
        routing: null,
      },
    });
  });

  it.each([{}, { streamed: false, attempts: [], sessionId: null, user: null, metadata: null, decision: null }])(
    'is the same for a row of an earlier release, whose record has all fields: %j',
    async (more) => {
      const record = usageRecordOf({ generationId: idOf('plain'), keyId: 'plain', ...more });
      await storeUsage(database, record);
      const now = (await ask('plain', record.generationId)).json();
      await database.query('truncate usage_ledger');
      await storeUsage(database, record, JSON.stringify);

      expect((await ask('plain', record.generationId)).json()).toEqual(now);
      expect(now.data).toMatchObject({ streamed: record.streamed, external_user: record.user, metadata: record.metadata });
    },
  );

  it('has what each attempt cost the operator for a management key', async () => {
    const { data } = (await ask('manager', await stored('plain'))).json();

    expect(data.provider_responses.map(({ cost }: { cost: number }) => cost)).toEqual([0.0001, 0.001]);
    expect(data.upstream_inference_cost).toBe(0.0011);
  });

  it.each([
    [
      { searches: 1, searchEngine: 'acme', searchResults: 3 },
      { num_searches: 1, num_search_results: 3, web_search_engine: 'acme' },
    ],
    [
      { searches: 2, searchEngine: 'native' },
      { num_searches: 2, num_search_results: null, web_search_engine: 'native' },
    ],
    // As workers of earlier commits record them.
    [{ searches: 1 }, { num_searches: 1, num_search_results: null, web_search_engine: null }],
  ])('has the searches %j', async (recorded, expected) => {
    const { data } = (await ask('plain', await stored('plain', recorded))).json();

    expect(data).toMatchObject(expected);
  });

  it('has no native counts when the upstream reported none', async () => {
    const { data } = (await ask('plain', await stored('plain', { estimated: true }))).json();

    expect(data).toMatchObject({
      tokens_prompt: 100,
      tokens_completion: 20,
      native_tokens_prompt: null,
      native_tokens_completion: null,
      native_tokens_cached: null,
    });
  });

  it('has a call for which no endpoint was asked', async () => {
    const nothing = { model: null, provider: null, providerName: null, upstreamId: null, attempts: [], finishReason: null };
    const { data } = (await ask('plain', await stored('plain', nothing))).json();

    expect(data).toMatchObject({ model: 'unknown', provider_name: null, latency: null, provider_responses: [], finish_reason: null });
  });

  it('has texts with any character', async () => {
    const text = 'a\u0000b\u2028\ud83d\ude00';
    const { data } = (await ask('plain', await stored('plain', { user: text, metadata: { text } }))).json();

    expect(data).toMatchObject({ external_user: text, metadata: { text } });
  });

  it('has an error of a newer release as unmapped', async () => {
    const [failed] = usageRecordOf({ generationId: '', keyId: '' }).attempts;
    const attempts = failed === undefined ? [] : [{ ...failed, code: 'router.of_the_future' }];

    expect((await ask('plain', await stored('plain', { attempts }))).json().data.provider_responses[0].error_type).toBe('unmapped');
  });

  it('waits for a row that is written behind the call', async () => {
    await opened.close();
    opened = openAccountApp({ database, bus, clock, limits: { generationPollMs: 1 } });
    const id = idOf('plain');
    const answering = ask('plain', id);
    await new Promise(setImmediate);
    await storeUsage(database, usageRecordOf({ generationId: id, keyId: 'plain' }));

    expect((await answering).json().data).toMatchObject({ id });
  });
});

describe('an id', () => {
  it('DESIGN 11: that is unknown, malformed or another key’s gets the same 404', async () => {
    const others = await stored('limited');
    const forged = `${others.slice(0, -1)}${others.endsWith('0') ? '1' : '0'}`;
    const bodies = new Set<string>();
    for (const [keyId, id] of [
      ['plain', idOf('plain')],
      ['plain', others],
      ['plain', forged],
      ['plain', 'gen-1'],
      ['plain', "gen-'; drop table usage_ledger"],
      ['plain', 'a\u0000'],
      ['manager', idOf('plain')],
      ['manager', forged],
      ['manager', 'gen-1'],
    ] as const) {
      const response = await ask(keyId, id);
      expect([id, response.statusCode]).toEqual([id, 404]);
      bodies.add(response.body);
    }
    expect(bodies.size).toBe(1);
  });

  it('DESIGN 11: whose tag is not that of the row’s key gets 404, also for a management key', async () => {
    const id = await stored('limited');
    await database.query('update usage_ledger set key_id = $1', ['plain']);

    expect((await ask('manager', id)).statusCode).toBe(404);
    expect((await ask('limited', id)).statusCode).toBe(404);
  });

  it('that is missing gets 400', async () => {
    const response = await opened.asKey('plain')('GET', '/generation');

    expect([response.statusCode, response.json().error.param]).toEqual([400, 'id']);
  });

  it('is not looked up when it cannot be the key’s', async () => {
    let reads = 0;
    const counted: Database = {
      transaction: (...work) => database.transaction(...work),
      close: async () => {},
      query: (...statement) => {
        reads += 1;
        return database.query(...statement);
      },
    };
    const { asKey, close } = openAccountApp({ database: counted, bus, clock, limits: { generationWaitMs: 20, generationPollMs: 1 } });
    await asKey('plain')('GET', `/generation?id=${idOf('limited')}`);
    await asKey('plain')('GET', '/generation?id=gen-1');
    await close();

    expect(reads).toBe(0);
  });

  it('is answered with 503 while the database is away', async () => {
    const { asKey, close } = openAccountApp({ database: null, bus, clock });
    const response = await asKey('plain')('GET', `/generation?id=${idOf('plain')}`);
    await close();

    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
  });
});
