import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { testConfig } from './test-support/harness.ts';
import { CHAT, hello, useGateway } from './test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

let database: Database;
let cache: Cache;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(() => {
  cache = memoryCache({ clock: systemClock });
});

const gateway = useGateway(async () => {
  const own = await openTestDatabase();
  const bus = await openMemoryBus({ database: own, clock: systemClock });
  return { bus, close: () => bus.close().then(() => own.close()) };
});

const prices = { prompt: '1', completion: '1', request: '1' };
const models = [{ id: 'acme/large', endpoints: [{ provider: 'scripted', upstream_model: 'large', prices, max_completion_tokens: 1 }] }];

/** The file's keys with other fields of the first. @returns reads the refusals: only those that are counted */
async function reopen(key: object, stores: { database: Database | null } = { database }) {
  const metrics = openMetrics();
  const keys = [{ id: 'one', key: '${KEY_ONE}', ...key }, ...testConfig.keys.slice(1)];
  await gateway.reopen({ config: routerConfig.parse({ ...testConfig, models, keys }), cache, metrics, ...stores });
  return async () => seriesOf(await metrics.text(), 'switchyard_refusals_total').filter((line) => !line.endsWith(' 0'));
}

it('DESIGN 12: counts each refusal by its reason, and nothing else', async () => {
  const refusals = await reopen({});
  const answered = gateway.post(hello);
  await gateway.answerNext();
  expect((await answered).statusCode).toBe(200);
  const failed = gateway.post(hello);
  await gateway.answerNext(502, { error: { code: 502, message: '', type: '' } });
  await failed;
  await gateway.opened.app.inject({ method: 'GET', url: '/nothing' });
  await gateway.post(hello, { authorization: '' });
  await gateway.post(hello, { authorization: 'Bearer wrong' });
  await gateway.post(hello, { authorization: 'Bearer sk-test-management' });
  await gateway.post({ ...hello, temperature: 'warm' });
  await gateway.post({ ...hello, model: 'of/none' });
  await gateway.post(hello, { origin: 'https://elsewhere.example' });
  await gateway.opened.app.inject({ method: 'POST', url: CHAT, payload: '{', headers: { authorization: 'Bearer sk-test-1', 'content-type': 'text/xml' } });

  await eventually(async () => (await refusals()).sort()).toEqual(['{reason="forbidden"} 1', '{reason="invalid"} 4', '{reason="unauthorized"} 2']);
});

it.each([
  ['requests_per_minute', { limits: { requests_per_minute: 1 } }],
  ['tokens_per_minute', { limits: { tokens_per_minute: 5 } }],
  ['calls_at_once', { limits: { calls_at_once: 1 } }],
  ['no_credit', { limit: '1.5' }],
])('names the limit that a key is over: %s', async (reason, key) => {
  const refusals = await reopen(key);
  const first = gateway.post(hello);
  const held = await gateway.worker.next();
  const refused = await gateway.post(hello);
  expect(refused.statusCode).toBe(reason === 'no_credit' ? 402 : 429);
  expect(refused.json().error.metadata).not.toHaveProperty('limit');
  held.body(200, {});
  await first;

  await eventually(refusals).toEqual([`{reason="${reason}"} 1`]);
});

it('distinguishes too much work from a store that is away', async () => {
  const refusals = await reopen({ limit: '1' }, { database: null });
  expect((await gateway.post(hello)).statusCode).toBe(503);
  gateway.faults.crowded = true;
  expect((await gateway.post(hello)).statusCode).toBe(503);
  gateway.faults.crowded = false;

  await eventually(async () => (await refusals()).sort()).toEqual(['{reason="not_ready"} 1', '{reason="overloaded"} 1']);
});
