import { OpenRouter } from '@openrouter/sdk';
import { ForbiddenResponseError, NotFoundResponseError, UnauthorizedResponseError } from '@openrouter/sdk/models/errors';
import { OpenRouter as OpenRouterOfContract } from 'openrouter-sdk-0.3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '../bus/bus.ts';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { startRouterGateway } from '../services/router-gateway/service.ts';
import { accountConfig, accountVariables } from '../services/router-gateway/test-support/account-app.ts';
import { HOUSE_SECRET } from '../services/router-gateway/test-support/harness.ts';
import { storeUsage, usageRecordOf } from '../services/router-gateway/test-support/usage-rows.ts';
import { systemClock } from '../shared/clock.ts';
import { mintGenerationId } from '../shared/generation-id.ts';
import type { Database } from '../shared/storage/database.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../shared/telemetry/log.ts';

let database: Database;
let bus: Bus;
let gateway: Awaited<ReturnType<typeof startRouterGateway>>;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  const config = { host: '127.0.0.1', port: 0, drainTimeoutMs: 0 };
  const keys = { routerConfig: accountConfig, environment: accountVariables, houseSecret: HOUSE_SECRET };
  gateway = await startRouterGateway({ config, ...keys, bus, database, cache: null, log: silentLog, clock: systemClock });
});
afterAll(async () => {
  await gateway.stop();
  await bus.close();
  await database.close();
});

// A notice ends the entry of the cache; without one it would last 10 s, which is why the bound is lower.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 9_000, interval: 5 });

/** The client checks every answer with the schemas of its version, and throws when one does not fit. */
const clientOf = (apiKey: string) => new OpenRouter({ apiKey, serverURL: `${gateway.url}/api/v1`, retryConfig: { strategy: 'none' } });

describe('the client of @openrouter/sdk 1.3', () => {
  it('makes, reads, changes and deletes a key', async () => {
    const { apiKeys } = clientOf('manager');
    const expiresAt = new Date(Date.now() + 3_600_000);

    const { key, data } = await apiKeys.create({ requestBody: { name: 'Shop', limit: 5, limitReset: 'weekly', includeByokInLimit: false, expiresAt } });
    const { hash } = data;
    const changed = await apiKeys.update({ hash, requestBody: { name: 'Other', disabled: true, limit: null } });
    const [shown, listed, all] = [await apiKeys.get({ hash }), await apiKeys.list(), await apiKeys.list({ includeDisabled: true, offset: 0 })];

    expect(key).toMatch(/^sk-sy-v1-/);
    expect(data).toMatchObject({ name: 'Shop', limit: 5, limitRemaining: 5, limitReset: 'weekly', expiresAt, disabled: false });
    expect(changed.data).toMatchObject({ hash, name: 'Other', limit: null, limitRemaining: null, disabled: true });
    expect(shown.data).toEqual(changed.data);
    expect(listed.data.map(({ name }) => name)).not.toContain('Other');
    expect(all.data.map(({ name }) => name)).toContain('Other');
    expect(await apiKeys.delete({ hash })).toEqual({ deleted: true });
    await expect(apiKeys.get({ hash })).rejects.toBeInstanceOf(NotFoundResponseError);
  });

  it('DESIGN 11: uses a key as soon as it is made, and is refused as soon as it is disabled or deleted', async () => {
    const { apiKeys } = clientOf('manager');
    const { key, data } = await apiKeys.create({ requestBody: { name: 'Shop' } });
    const outcome = () =>
      clientOf(key)
        .apiKeys.getCurrentKeyMetadata()
        .then(
          ({ data: { label } }) => label,
          (error: unknown) => error,
        );

    expect(await outcome()).toBe(data.label);
    await apiKeys.update({ hash: data.hash, requestBody: { disabled: true } });
    await eventually(outcome).toMatchObject({ message: 'The API key is disabled' });
    await apiKeys.update({ hash: data.hash, requestBody: { disabled: false } });
    await eventually(outcome).toBe(data.label);
    await apiKeys.delete({ hash: data.hash });
    await eventually(outcome).toBeInstanceOf(UnauthorizedResponseError);
  });

  it('reads the calling key, and the credit of all', async () => {
    const [plain, limited] = [await clientOf('plain').apiKeys.getCurrentKeyMetadata(), await clientOf('limited').apiKeys.getCurrentKeyMetadata()];

    expect(plain.data).toMatchObject({ label: 'Key plain', limit: null, isManagementKey: false, rateLimit: { requests: -1 } });
    expect(limited.data).toMatchObject({ limit: 2, limitRemaining: 2, limitReset: 'daily', rateLimit: { requests: 60 } });
    expect((await clientOf('manager').credits.getCredits()).data).toEqual({ totalCredits: 2, totalUsage: 0 });
    await expect(clientOf('plain').credits.getCredits()).rejects.toBeInstanceOf(ForbiddenResponseError);
  });

  it('reads a call that has ended, and the activity of its key', async () => {
    const nowMs = Date.now();
    const generationId = mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gtest', keyId: 'plain', nowMs });
    const candidates = ['west', 'east'].map((slug) => ({ endpoint: `acme/large@${slug}`, weight: 1 }));
    const decision = { requested: ['large'], strategy: 'weighted', drawn: true, candidates, tried: [0, 1] };
    await storeUsage(database, usageRecordOf({ generationId, keyId: 'plain', createdAtMs: nowMs, decision }));
    const failed = mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gtest', keyId: 'plain', nowMs });
    const nothing = { model: null, provider: null, providerName: null, upstreamId: null, attempts: [], finishReason: null, nativeFinishReason: null };
    await storeUsage(database, usageRecordOf({ generationId: failed, keyId: 'plain', createdAtMs: nowMs, estimated: true, ...nothing }));
    const { generations, analytics } = clientOf('plain');

    expect((await generations.getGeneration({ id: generationId })).data).toMatchObject({
      id: generationId,
      totalCost: 0.0012,
      providerResponses: [
        { status: 502, endpointId: 'acme/large@west' },
        { status: 200, endpointId: 'acme/large@east' },
      ],
    });
    expect((await generations.getGeneration({ id: failed })).data).toMatchObject({ model: 'unknown', nativeTokensPrompt: null });
    expect((await analytics.getUserActivity()).data).toMatchObject([
      { model: 'acme/large', requests: 1 },
      { model: 'none', requests: 1 },
    ]);
    expect((await clientOf('manager').analytics.getUserActivity({ date: new Date(nowMs).toISOString().slice(0, 10) })).data).toHaveLength(2);
    await expect(clientOf('limited').generations.getGeneration({ id: generationId })).rejects.toBeInstanceOf(NotFoundResponseError);
  });
});

describe('the client of @openrouter/sdk 0.3', () => {
  it('makes, reads, changes and deletes a key, and reads what it used', async () => {
    const contractClientOf = (apiKey: string) => new OpenRouterOfContract({ apiKey, serverURL: `${gateway.url}/api/v1`, retryConfig: { strategy: 'none' } });
    const { apiKeys, credits, analytics } = contractClientOf('manager');
    const { key, data } = await apiKeys.create({ name: 'Old', limit: 5, limitReset: 'monthly', expiresAt: new Date(Date.now() + 3_600_000) });
    const { hash } = data;
    const [{ id: keyId = '' } = {}] = (await database.query<{ id: string }>('select id from router_keys where hash = $1', [hash])).rows;
    const nowMs = Date.now();
    const generationId = mintGenerationId({ houseSecret: HOUSE_SECRET, origin: 'gtest', keyId, nowMs });
    await storeUsage(database, usageRecordOf({ generationId, keyId, createdAtMs: nowMs }));
    const own = contractClientOf(key);

    expect(data).toMatchObject({ name: 'Old', limit: 5, limitRemaining: 5, limitReset: 'monthly' });
    expect((await own.apiKeys.getCurrentKeyMetadata()).data).toMatchObject({ label: data.label, limit: 5, isProvisioningKey: false });
    expect((await own.generations.getGeneration({ id: generationId })).data).toMatchObject({ id: generationId, totalCost: 0.0012 });
    expect((await own.analytics.getUserActivity()).data).toMatchObject([{ requests: 1 }]);
    expect((await analytics.getUserActivity()).data.length).toBeGreaterThan(0);
    expect((await credits.getCredits()).data.totalUsage).toBe(0);
    expect((await apiKeys.update({ hash, requestBody: { name: 'New' } })).data.name).toBe('New');
    expect((await apiKeys.list()).data.map(({ name }) => name)).toContain('New');
    expect((await apiKeys.get({ hash })).data.hash).toBe(hash);
    expect(await apiKeys.delete({ hash })).toEqual({ deleted: true });
  });
});
