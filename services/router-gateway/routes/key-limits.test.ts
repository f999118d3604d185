import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { testConfig } from '../test-support/harness.ts';
import { hello, useGateway } from '../test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });

let database: Database;
let cache: Cache;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.query('delete from reservations');
  await database.query('delete from key_spend');
  cache = memoryCache({ clock: systemClock });
});

const gateway = useGateway(async () => {
  const own = await openTestDatabase();
  const bus = await openMemoryBus({ database: own, clock: systemClock });
  return { bus, close: () => bus.close().then(() => own.close()) };
});

/** The file's first key with other fields. `acme/large` costs a cent per call, and at most 1,000 tokens at 2.50 per million. */
function configWith(key: object, maxCompletionTokens = 1_000): RouterConfig {
  const prices = { prompt: '0.15', completion: '2.50', request: '0.01' };
  const endpoint = { provider: 'scripted', upstream_model: 'large', prices, max_completion_tokens: maxCompletionTokens };
  return routerConfig.parse({ ...testConfig, models: [{ id: 'acme/large', endpoints: [endpoint] }], keys: [{ id: 'one', key: '${KEY_ONE}', ...key }] });
}
const reopen = (key: object, more: Parameters<typeof gateway.reopen>[0] = {}) => gateway.reopen({ config: configWith(key), database, cache, ...more });
const large = { ...hello, model: 'acme/large' };
const reservations = async () => (await database.query<{ call_id: string; amount_nano: number }>('select call_id, amount_nano from reservations')).rows;

/** Fails the test where a key without limits would touch it. */
function untouched<Store extends object>(name: string): Store {
  return new Proxy({} as Store, {
    get: (_, property) => {
      throw new Error(`${name}.${String(property)} was used`);
    },
  });
}

describe('a key with a credit limit', () => {
  it('reserves the most that a call can cost, and sends the default of completion tokens as its ceiling', async () => {
    await reopen({ limit: '1' });
    const answered = gateway.post(large);
    const { call, ...held } = await gateway.worker.next();
    expect(call).toMatchObject({ reserved: true, maxTokens: 4_096 });
    // 2 tokens at 0.15, 1,000 at 2.50 per million, and a cent.
    expect(await reservations()).toEqual([{ call_id: call.callId, amount_nano: 300 + 2_500_000 + 10_000_000 }]);
    held.body(200, {});
    expect((await answered).statusCode).toBe(200);
  });

  it('releases what it reserved for a call that can not be prepared', async () => {
    await reopen({ limit: '1' }, { limits: { shortDispatchBytes: 0 } });
    const size = vi.spyOn(gateway.bus.work, 'maxDispatchBytes').mockImplementation(() => {
      throw new RangeError('broken');
    });
    const { statusCode } = await gateway.post(large);
    size.mockRestore();
    expect(statusCode).toBe(500);
    await eventually(reservations).toEqual([]);
  });

  it('sends no ceiling beside the request’s own', async () => {
    await reopen({ limit: '1' });
    const answered = gateway.post({ ...large, max_tokens: 10 });
    expect(await gateway.answerNext()).toMatchObject({ reserved: true, maxTokens: null });
    await answered;
    expect((await reservations())[0]?.amount_nano).toBe(300 + 25_000 + 10_000_000);
  });

  it('DESIGN 8: a call for which the credit does not suffice is refused with 402, and nothing is sent', async () => {
    await reopen({ limit: '0.02' });
    const first = gateway.post(large);
    const held = await gateway.worker.next();
    const refused = await gateway.post(large);
    expect(refused.statusCode).toBe(402);
    expect(refused.json()).toMatchObject({ error: { code: 402, type: 'payment_required', metadata: { error_type: 'payment_required' } } });
    expect(refused.headers['x-generation-id']).toMatch(/^gen-/);
    expect(await reservations()).toHaveLength(1);
    held.body(200, {});
    await first;
  });

  it('spends nothing with a limit of 0', async () => {
    await reopen({ limit: '0' });
    expect((await gateway.post({ ...large, max_tokens: 1 })).statusCode).toBe(402);
    expect(await reservations()).toEqual([]);
  });

  it('gets room for 10 of 200 calls at once, and 402 for the others', async () => {
    await reopen({ limit: '0.125' });
    const answers = Array.from({ length: 200 }, () => gateway.post(large));
    for (let call = 0; call < 9; call += 1) await gateway.answerNext();
    const statuses = (await Promise.all(answers)).map(({ statusCode }) => statusCode);
    // 9 × 0.0125003 is all that fits into 0.125.
    expect(statuses.filter((status) => status === 200)).toHaveLength(9);
    expect(statuses.filter((status) => status === 402)).toHaveLength(191);
  });

  it.each([
    ['no database', null],
    [
      'a database that does not answer',
      {
        query: async () => {
          throw new SwitchyardError('service.unreachable', 'away');
        },
      } as unknown as Database,
    ],
  ])('gets 503 and the time to wait with %s', async (_, away) => {
    await reopen({ limit: '1' }, { config: configWith({ limit: '1' }), database: away, cache });
    const refused = await gateway.post(large);
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
  });

  it.each([
    ['has its credit back when the bus refuses the call', new SwitchyardError('bus.full', 'full'), 0],
    ['keeps its credit reserved when the bus may have taken the call', new SwitchyardError('service.unreachable', 'no answer'), 1],
  ])('%s', async (_, error, left) => {
    await reopen({ limit: '0.02' });
    gateway.faults.refusesDispatches = true;
    gateway.faults.beforePublish = async () => {
      throw error;
    };
    expect((await gateway.post(large)).statusCode).toBe(503);
    // Releases of a gateway are sent before its later reservations are decided.
    await eventually(async () => (await gateway.post(large)).statusCode).toBe(left === 0 ? 503 : 402);
    await eventually(async () => (await reservations()).length).toBe(left);
    expect((await database.query('select reserved_nano as nano from key_spend')).rows).toEqual([{ nano: left * 12_500_300 }]);
  });
});

describe('a key without limits', () => {
  it('DESIGN 8: a call of a key without limits touches neither the database nor the cache', async () => {
    await gateway.reopen({ config: configWith({}), database: untouched('database'), cache: untouched('cache') });
    const answered = gateway.post(large);
    const call = await gateway.answerNext();
    expect((await answered).statusCode).toBe(200);
    expect(Object.keys(call)).not.toEqual(expect.arrayContaining(['reserved']));
    expect(call).toMatchObject({ maxTokens: null });
    expect(call.countedTokens).toBeUndefined();
  });
});

describe('a key with rate limits', () => {
  it('gets 429 with the limit, what remains and when to come back', async () => {
    await reopen({ limits: { requests_per_minute: 2 } });
    for (const _ of [1, 2]) {
      const answered = gateway.post(large);
      await gateway.answerNext();
      expect((await answered).statusCode).toBe(200);
    }
    const refused = await gateway.post(large);
    expect(refused.statusCode).toBe(429);
    expect(refused.json()).toMatchObject({ error: { code: 429, type: 'rate_limit_exceeded', message: 'The API key is limited to 2 requests per minute' } });
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' });
    const resetInMs = Number(refused.headers['x-ratelimit-reset']) - systemClock.nowMs();
    expect(resetInMs).toBeLessThanOrEqual(60_000);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(Math.floor(resetInMs / 1_000));
  });

  it('DESIGN 8: calls of a key are counted over all gateways together', async () => {
    await reopen({ limits: { requests_per_minute: 1 } });
    const answered = gateway.post(large);
    await gateway.answerNext();
    await answered;
    await reopen({ limits: { requests_per_minute: 1 } });
    expect((await gateway.post(large)).statusCode).toBe(429);
  });

  it('has a slot per call, which is free again with its end', async () => {
    await reopen({ limits: { calls_at_once: 1 } });
    const first = gateway.post(large);
    const held = await gateway.worker.next();
    const refused = await gateway.post(large);
    expect([refused.statusCode, refused.headers['retry-after'], refused.headers['x-ratelimit-limit']]).toEqual([429, '1', '1']);
    held.body(200, {});
    await first;
    await eventually(() => cache.acquireSlot('rate:slots:one', 'another call', 1, 60_000)).toBe(true);
    expect((await gateway.post(large)).statusCode).toBe(429);
    await cache.releaseSlot('rate:slots:one', 'another call');
    const again = gateway.post(large);
    await gateway.answerNext();
    expect((await again).statusCode).toBe(200);
  });

  it('counts the tokens that a call may use, and says so to the worker, which corrects them', async () => {
    await reopen({ limits: { tokens_per_minute: 1_500 } });
    const answered = gateway.post({ ...large, max_tokens: 900 });
    expect((await gateway.answerNext()).countedTokens).toBe(902);
    await answered;
    const refused = await gateway.post({ ...large, max_tokens: 900 });
    expect(refused.statusCode).toBe(429);
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '1500', 'x-ratelimit-remaining': '598' });
    const smaller = gateway.post({ ...large, max_tokens: 500 });
    await gateway.answerNext();
    expect((await smaller).statusCode).toBe(200);
  });

  it('gives a request without a limit of its own the ceiling that its tokens per minute allow, in place of refusing it for ever', async () => {
    await reopen({ limits: { tokens_per_minute: 500 } });
    const answered = gateway.post(large);
    expect(await gateway.answerNext()).toMatchObject({ countedTokens: 500, maxTokens: 498 });
    expect((await answered).statusCode).toBe(200);
    // Its tokens count until its usage is known: this is a refusal for a time.
    const refused = await gateway.post(large);
    expect([refused.statusCode, refused.headers['x-should-retry']]).toEqual([429, undefined]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('sends the ceiling also where it is above the default, since a budget of reasoning comes on top of that', async () => {
    await reopen({ limits: { tokens_per_minute: 5_000 } }, { config: configWith({ limits: { tokens_per_minute: 5_000 } }, 40_000) });
    const answered = gateway.post({ ...large, reasoning: { max_tokens: 16_000 } });
    expect(await gateway.answerNext()).toMatchObject({ countedTokens: 5_000, maxTokens: 4_998 });
    await answered;
  });

  it('sends no ceiling where the default is within the tokens per minute', async () => {
    await reopen({ limits: { tokens_per_minute: 100_000 } });
    const answered = gateway.post(large);
    expect(await gateway.answerNext()).toMatchObject({ countedTokens: 1_002, maxTokens: null });
    await answered;
  });

  it.each([
    ['a limit of its own', { ...large, max_tokens: 900 }, '902'],
    ['a prompt', { ...large, messages: [{ role: 'user', content: 'word '.repeat(2_000) }] }, ''],
  ])('refuses a request that %s takes beyond the tokens per minute, says why and that no retry helps, and counts nothing of it', async (_, body, counts) => {
    await reopen({ limits: { tokens_per_minute: 500 } });
    const refused = await gateway.post(body);
    expect(refused.statusCode).toBe(429);
    expect(refused.headers).toMatchObject({ 'x-should-retry': 'false' });
    expect(refused.headers['retry-after']).toBeUndefined();
    expect(refused.json().error).toMatchObject({ type: 'rate_limit_exceeded', message: expect.stringContaining(`counts ${counts}`) });
    expect(refused.json().error.message).toContain('limited to 500 tokens per minute');
    const within = gateway.post({ ...large, max_tokens: 400 });
    await gateway.answerNext();
    expect((await within).statusCode).toBe(200);
  });

  it('takes no credit for a call that a rate limit refuses', async () => {
    await reopen({ limit: '1', limits: { requests_per_minute: 1 } });
    const answered = gateway.post(large);
    await gateway.answerNext();
    await answered;
    expect((await gateway.post(large)).statusCode).toBe(429);
    expect(await reservations()).toHaveLength(1);
  });

  it('DESIGN 8: while the cache is away each gateway limits a key by itself, no request fails for it, and one line says so', async () => {
    const away = new Proxy({} as Cache, {
      get: () => async () => {
        throw new SwitchyardError('service.unreachable', 'away');
      },
    });
    await reopen(
      { limits: { requests_per_minute: 2, calls_at_once: 5 } },
      { config: configWith({ limits: { requests_per_minute: 2 } }), database, cache: away },
    );
    for (const _ of [1, 2]) {
      const answered = gateway.post(large);
      expect((await gateway.answerNext()).countedTokens).toBeUndefined();
      expect((await answered).statusCode).toBe(200);
    }
    expect((await gateway.post(large)).statusCode).toBe(429);
    expect(gateway.opened.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});
