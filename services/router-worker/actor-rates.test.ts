import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import { modelKeys } from '#shared/keys/file-keys.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { startRouterWorker } from './service.ts';
import { recordedLog } from './test-support/recorded-log.ts';

const WAIT = { timeout: 60_000 };
const MINUTE_MS = 60_000;
const SESSION = 'ses_1';
const SECRETS = { LIMITED: 'sk-limited', FREE: 'sk-free' };
const endpoints = [{ provider: 'local', upstream_model: 'primary', max_completion_tokens: 1_000 }];
const limits = { requests_per_minute: 2, tokens_per_minute: 2_500, calls_at_once: 1 };
const config = routerConfig.parse({
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [{ id: 'scripted/assistant', endpoints }],
  keys: [
    { id: 'limited', name: 'The agent', key: '${LIMITED}', limits },
    { id: 'free', key: '${FREE}' },
  ],
});

let database: Database;
let bus: Bus;
let cache: Cache;
/** What was asked of the cache. */
let asked: string[];
let nowMs: number;
let worker: { stop(): Promise<void> };
let recorded: ReturnType<typeof recordedLog>;
const clock = { nowMs: () => nowMs };

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  // The middle of a minute, which does not end while a test runs. The bus has the real time, and old items are looked up before they are executed.
  nowMs = Math.floor(systemClock.nowMs() / MINUTE_MS) * MINUTE_MS + MINUTE_MS / 2;
  asked = [];
  await database.query('delete from effects');
  const real = memoryCache({ clock });
  cache = new Proxy(real, {
    get: (target, name: keyof Cache) => {
      const method = target[name] as (...all: unknown[]) => unknown;
      return (...all: unknown[]) => {
        asked.push(`${name} ${String(all[0])}`);
        return method.apply(target, all);
      };
    },
  });
  bus = await openMemoryBus({ database, clock: systemClock });
  recorded = recordedLog();
  const fileKeys = modelKeys(config, SECRETS);
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache, fileKeys, log: recorded.log, clock });
});
afterEach(async () => {
  await worker.stop();
  await bus.close();
});

async function publish({ secret = SECRETS.LIMITED, leftMs = 10 * MINUTE_MS } = {}): Promise<string> {
  const call: RouterCall = {
    ...{ v: 1, callId: `call_${ulid()}`, origin: SESSION, want: 'none', surface: 'parts', deadlineAtMs: nowMs + leftMs, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId: `sha256:${hashOfSecret(secret)}`, traceparent: null, maxTokens: 100_000 },
    request: { messages: [{ role: 'user', content: 'Hello!' }] },
    reply: { sessionId: SESSION, ...actorFields('trn_1') },
  };
  await bus.work.publish('router.turn', call.callId, JSON.stringify(call));
  return call.callId;
}

async function commandOf(callId: string): Promise<unknown> {
  const found: string[] = [];
  const reading = bus.commands.read(partitionOf(SESSION), { sequence: 0, fingerprint: null }, async (commands) => {
    for (const { messageId, body } of commands) if (messageId === callId) found.push(body);
  });
  await vi.waitFor(() => expect(found).not.toHaveLength(0), WAIT);
  await reading.stop();
  return JSON.parse(found[0] ?? '');
}

const counterOf = (counts: string) => cache.get(`rate:${counts}:limited:${Math.floor(nowMs / MINUTE_MS)}`);
const isWaiting = (callId: string) =>
  vi.waitFor(() => {
    const lines = recorded.lines.filter(({ fields }) => fields['call_id'] === callId);
    expect(lines).toMatchObject([{ message: 'a call of an agent waits, since its key is over its limits', fields: { key_label: 'The agent' } }]);
  }, WAIT);

it('DESIGN 8: calls of actors count for the limits of their key, with those of gateways, and wait while there is no room', async () => {
  expect(await commandOf(await publish())).toMatchObject({ type: 'call.completed' });
  // As a gateway counts.
  await cache.increment(`rate:requests:limited:${Math.floor(nowMs / MINUTE_MS)}`, 1, 2 * MINUTE_MS);
  const callId = await publish();
  await isWaiting(callId);

  nowMs += MINUTE_MS;
  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
  expect(await counterOf('requests')).toBe('1');
});

it('a call of an actor that can not wait for the limits of its key fails, without an attempt, and the log has the label', async () => {
  await cache.increment(`rate:requests:limited:${Math.floor(nowMs / MINUTE_MS)}`, 2, 2 * MINUTE_MS);
  const callId = await publish({ leftMs: 4_000 });

  expect(await commandOf(callId)).toMatchObject({
    type: 'call.failed',
    failure: { code: 'request.rate_limited', message: 'The API key is limited to 2 requests per minute' },
  });
  const lines = recorded.lines.filter(({ fields }) => fields['call_id'] === callId);
  expect(lines).toContainEqual(expect.objectContaining({ level: 'error', fields: expect.objectContaining({ key_label: 'The agent' }) as object }));
  expect(lines).toContainEqual(expect.objectContaining({ fields: expect.objectContaining({ code: 'request.rate_limited', attempts: 0 }) as object }));
});

it('the slot of a call of an actor is taken while it runs, and free when it has ended', async () => {
  await cache.acquireSlot('rate:slots:limited', 'a call of a gateway', 1, 10 * MINUTE_MS);
  const callId = await publish();
  await isWaiting(callId);

  await cache.releaseSlot('rate:slots:limited', 'a call of a gateway');
  expect(await commandOf(callId)).toMatchObject({ type: 'call.completed' });
  await vi.waitFor(async () => expect(await cache.acquireSlot('rate:slots:limited', 'another', 1, MINUTE_MS)).toBe(true), WAIT);
});

it('the tokens of a call of an actor count as its key allows, and as used from its end', async () => {
  const counted: string[] = [];
  const command = (await commandOf(await publish())) as { usage?: { promptTokens: number; completionTokens: number } };
  expect(command).toMatchObject({ type: 'call.completed' });
  for (const entry of asked) if (entry.startsWith('increment rate:tokens')) counted.push(entry);

  expect(counted).toHaveLength(2);
  const used = Number(await counterOf('tokens'));
  expect(used).toBeGreaterThan(0);
  // Far less than the thousand that the endpoint may give.
  expect(used).toBeLessThan(500);
});

it('calls of actors under a key without limits do not touch the cache', async () => {
  expect(await commandOf(await publish({ secret: SECRETS.FREE }))).toMatchObject({ type: 'call.completed' });
  expect(asked.filter((entry) => entry.includes('rate:'))).toEqual([]);
});
