import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { startRouterWorker } from './service.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const endpoint = { provider: 'local', upstream_model: 'a' };
const config = routerConfig.parse({
  providers: [{ slug: 'local', kind: 'scripted' }],
  models: [
    { id: 'acme/large', aliases: ['large'], endpoints: [{ ...endpoint, prices: { prompt: '1', completion: '2' } }] },
    { id: 'acme/unpriced', endpoints: [endpoint] },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});

let database: Database;
let bus: Bus;
let worker: { stop(): Promise<void> };
let of: (name: string) => Promise<string[]>;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  const metrics = openMetrics();
  of = async (name) => seriesOf(await metrics.text(), `switchyard_${name}_total`).filter((line) => !line.endsWith(' 0'));
  bus = await openMemoryBus({ database, clock: systemClock });
  worker = await startRouterWorker({ config, environment: {}, bus, database, cache: null, log: silentLog, clock: systemClock, metrics });
});
afterEach(async () => {
  await worker.stop();
  await bus.close();
});

function publish(text: string, model: string, fields: Partial<RouterCall> = {}): Promise<unknown> {
  const nowMs = systemClock.nowMs();
  const call: RouterCall = {
    ...{ v: 1, callId: `gen-gw-${ulid()}`, origin: 'gw', want: 'frames', surface: 'chat-completions', deadlineAtMs: nowMs + 60_000, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId: 'k', traceparent: null, maxTokens: null, reply: null },
    request: { model, messages: [{ role: 'user', content: text }] },
    ...fields,
  };
  return bus.work.publish('router.call', call.callId, JSON.stringify(call));
}

const total = (lines: readonly string[]) => lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);

it('DESIGN 12: counts calls, their tokens by kind and their cost by the model and provider of the configuration', async () => {
  await publish('Hello!', 'large');
  await publish('Hello!', 'acme/large');
  await publish('Hello!', 'acme/unpriced');
  await eventually(async () => total(await of('router_calls'))).toBe(3);

  expect((await of('router_calls')).sort()).toEqual([
    '{kind="client",model="acme/large",provider="local",outcome="completed"} 2',
    '{kind="client",model="acme/unpriced",provider="local",outcome="completed"} 1',
  ]);
  const tokens = await of('tokens');
  const tokensOf = (kind: string) => total(tokens.filter((line) => line.startsWith(`{model="acme/large",provider="local",kind="${kind}"}`)));
  expect(tokensOf('prompt')).toBeGreaterThan(0);
  expect(tokensOf('completion')).toBeGreaterThan(0);
  const [cost = '', ...others] = await of('cost_usd');
  expect(others, 'a call without prices has no cost').toEqual([]);
  expect(cost).toMatch(/^\{model="acme\/large",provider="local"\} /);
  expect(total([cost])).toBeCloseTo((tokensOf('prompt') + 2 * tokensOf('completion')) / 1e6, 12);
  expect(await of('upstream_attempts')).toContain('{model="acme/large",provider="local",outcome="ok"} 2');
  expect(await of('refusals')).toEqual([]);
});

it('counts what is billed of an answer that broke off, and no refusal of a provider', async () => {
  await publish('!fail cut after=2', 'acme/large');
  await publish('!fail 529', 'acme/large');
  await eventually(async () => total(await of('router_calls'))).toBe(2);
  await eventually(() => of('cost_usd')).toEqual(['{model="acme/large",provider="local"} 0.000007']);

  expect(await of('tokens')).toEqual(expect.arrayContaining(['{model="acme/large",provider="local",kind="completion"} 1']));
  expect(await of('upstream_attempts')).toContain('{model="acme/large",provider="local",outcome="router.provider_overloaded"} 1');
  expect(await of('refusals')).toEqual([]);
});

it('makes no series of what a caller names, and counts by its reason a call that no endpoint was asked for', async () => {
  await publish('Hello!', 'evil"} 1');
  await publish('Hello!', 'acme/unpriced', { reserved: true });
  await publish('Hello!', 'acme/large', { deadlineAtMs: systemClock.nowMs() - 1 });
  await eventually(async () => total(await of('router_calls'))).toBe(3);

  expect((await of('router_calls')).sort()).toEqual([
    '{kind="client",model="acme/large",provider="other",outcome="failed"} 1',
    '{kind="client",model="acme/unpriced",provider="other",outcome="failed"} 1',
    '{kind="client",model="other",provider="other",outcome="failed"} 1',
  ]);
  expect((await of('refusals')).sort()).toEqual(['{reason="invalid"} 1', '{reason="no_endpoint"} 1']);
});
