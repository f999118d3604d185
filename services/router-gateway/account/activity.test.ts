import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { systemClock } from '#shared/clock.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';
import { storeUsage, usageRecordOf } from '../test-support/usage-rows.ts';

let database: Database;
let bus: Bus;
let opened: AccountApp;
let calls = 0;
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
  await database.query('truncate usage_ledger, router_keys');
  opened = openAccountApp({ database, bus, clock });
  return () => opened.close();
});

async function call(keyId: string, at: string, more: Partial<UsageRecord> = {}): Promise<void> {
  calls += 1;
  await storeUsage(database, usageRecordOf({ generationId: `gen-${calls}`, keyId, createdAtMs: Date.parse(at), ...more }));
}

const entries = async (keyId: string, query = '') => (await opened.asKey(keyId)('GET', `/activity${query}`)).json().data;

const one = {
  date: '2026-11-22',
  model: 'acme/large',
  model_permaslug: 'acme/large',
  endpoint_id: 'east/acme/large',
  provider_name: 'East',
  usage: 0.0012,
  byok_usage_inference: 0,
  requests: 1,
  prompt_tokens: 100,
  completion_tokens: 20,
  reasoning_tokens: 5,
};

describe('GET /activity', () => {
  it('sums the calls of a key by day of UTC, model and provider, newest day first', async () => {
    await call('plain', '2026-11-22T00:00:00.000Z');
    await call('plain', '2026-11-22T11:00:00.000Z');
    await call('plain', '2026-11-21T23:59:59.999Z');
    await call('plain', '2026-11-21T10:00:00.000Z', { model: 'acme/small' });
    await call('plain', '2026-11-21T10:00:00.000Z', { provider: 'gone' });
    await call('plain', '2026-11-21T10:00:00.000Z', { model: null, provider: null, costNano: 0 });
    await call('limited', '2026-11-22T11:00:00.000Z');

    const before = { ...one, date: '2026-11-21' };
    expect(await entries('plain')).toEqual([
      { ...one, usage: 0.0024, requests: 2, prompt_tokens: 200, completion_tokens: 40, reasoning_tokens: 10 },
      before,
      { ...before, endpoint_id: 'gone/acme/large', provider_name: 'gone' },
      { ...before, model: 'acme/small', model_permaslug: 'acme/small', endpoint_id: 'east/acme/small' },
      { ...before, model: 'none', model_permaslug: 'none', endpoint_id: 'none/none', provider_name: 'none', usage: 0 },
    ]);
  });

  it('has all keys for a management key, also deleted ones', async () => {
    await database.query(`insert into router_keys (id, hash, name, label, made_by) values ('key_1', $1, 'Shop', 'sk-sy-v1-abc...def', 'management')`, [
      'a'.repeat(64),
    ]);
    for (const keyId of ['plain', 'key_1', 'key_gone']) await call(keyId, '2026-11-22T10:00:00Z');

    expect(await entries('manager')).toEqual([
      { ...one, api_key_id: 'key_1', api_key_hash: 'a'.repeat(64), api_key_label: 'sk-sy-v1-abc...def' },
      { ...one, api_key_id: 'key_gone', api_key_hash: null, api_key_label: null },
      { ...one, api_key_id: 'plain', api_key_hash: hashOfSecret('plain'), api_key_label: 'Key plain' },
    ]);
    expect(await entries('manager', `?api_key_hash=${'a'.repeat(64)}`)).toEqual([expect.objectContaining({ api_key_id: 'key_1' })]);
    expect(await entries('manager', `?api_key_hash=${hashOfSecret('plain')}`)).toEqual([expect.objectContaining({ api_key_id: 'plain' })]);
    expect((await opened.asManager('GET', `/activity?api_key_hash=${'b'.repeat(64)}`)).statusCode).toBe(404);
  });

  it('shows another key nothing but its own', async () => {
    await call('limited', '2026-11-22T10:00:00Z');

    expect(await entries('plain')).toEqual([]);
    expect(await entries('limited', `?api_key_hash=${hashOfSecret('limited')}`)).toEqual([one]);
    expect((await opened.asKey('plain')('GET', `/activity?api_key_hash=${hashOfSecret('limited')}`)).statusCode).toBe(403);
  });

  it('reaches back 30 days, the current one included', async () => {
    await call('plain', '2026-10-24T00:00:00.000Z');
    await call('plain', '2026-10-23T23:59:59.999Z');

    expect((await entries('plain')).map(({ date }: { date: string }) => date)).toEqual(['2026-10-24']);
  });

  it('has one day alone when a date is given', async () => {
    await call('plain', '2026-11-22T00:00:00.000Z');
    await call('plain', '2026-11-21T23:59:59.999Z');
    await call('plain', '2026-11-20T23:59:59.999Z');

    expect((await entries('plain', '?date=2026-11-21')).map(({ date }: { date: string }) => date)).toEqual(['2026-11-21']);
  });

  it.each(['2026-10-23', '2026-11-23', '2026-02-30', 'x', '2026-11-22T00:00:00Z'])('refuses the date %s', async (date) => {
    const response = await opened.asKey('plain')('GET', `/activity?date=${date}`);

    expect([response.statusCode, response.json().error.param]).toEqual([400, 'date']);
  });

  it('refuses what does not fit one response, and says how to get less', async () => {
    await opened.close();
    opened = openAccountApp({ database, bus, clock, limits: { activityRows: 2 } });
    for (const keyId of ['plain', 'limited', 'other']) await call(keyId, '2026-11-22T10:00:00Z');

    const response = await opened.asManager('GET', '/activity');

    expect([response.statusCode, response.json().error.message]).toEqual([400, expect.stringContaining('api_key_hash')]);
    expect(await entries('plain')).toHaveLength(1);
  });
});
