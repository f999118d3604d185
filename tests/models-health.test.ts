import { beforeEach, expect, it } from 'vitest';
import { SharedHealth } from '../services/router-gateway/models/shared-health.ts';
import { Health } from '../services/router-worker/call/health/health.ts';
import { HealthExchange } from '../services/router-worker/call/health/health-exchange.ts';
import { recordedLog } from '../services/router-worker/test-support/recorded-log.ts';
import type { EndpointConfig } from '../shared/config/router-config.ts';
import { SwitchyardError } from '../shared/errors/switchyard-error.ts';
import type { Cache } from '../shared/storage/cache.ts';
import { memoryCache } from '../shared/storage/memory/memory-cache.ts';
import { noMetrics } from '../shared/telemetry/metrics.ts';

let nowMs = 1_000_000;
const clock = { nowMs: () => nowMs };
const { log } = recordedLog();
let cache: Cache;
beforeEach(() => {
  cache = memoryCache({ clock });
});

const endpoint = (provider: string, upstream = 'a'): EndpointConfig => ({ provider, upstream_model: upstream });
const targetOf = (one: EndpointConfig) => ({ model: { id: 'm/a' }, endpoint: one, provider: { slug: one.provider } });

function worker() {
  const health = new Health({ clock, log, metrics: noMetrics });
  const exchange = new HealthExchange({ cache, health, clock, log });
  /** @param error absent: an answer of 100 tokens in a second, the first after half a second */
  const attempt = (one: EndpointConfig, times: number, error?: SwitchyardError) => {
    for (let time = 0; time < times; time += 1) {
      const attempted = health.begin(targetOf(one));
      if (error === undefined) {
        nowMs += 500;
        attempted.answered();
        nowMs += 1_000;
      }
      attempted.end(error === undefined ? { how: 'succeeded', completionTokens: 100 } : { how: 'failed', error });
    }
  };
  return { health, exchange, attempt };
}

const misconfigured = new SwitchyardError('router.provider_misconfigured', 'no', { details: { status: 401 } });
const down = new SwitchyardError('router.provider_unavailable', 'it is down');

it('is what workers share: speeds of all of them, and which endpoints are asked last or fail', async () => {
  const [one, two] = [worker(), worker()];
  one.attempt(endpoint('east'), 12);
  two.attempt(endpoint('east'), 12);
  one.attempt(endpoint('west'), 5, down);
  two.attempt(endpoint('south'), 1, misconfigured);
  one.attempt(endpoint('north'), 3);
  // One writes where the other reads: a key each in the first round, the values in the second.
  for (const { exchange } of [one, two, one, two]) await exchange.round();
  const shared = new SharedHealth({ cache, clock });
  await shared.refresh();

  const of = (provider: string, upstream?: string) => shared.of(endpoint(provider, upstream));
  expect(of('east')).toMatchObject({ status: 0, uptime: { last5m: 100, last30m: 100, last1d: 100 } });
  expect(of('east')?.latencyMs?.p50).toBeCloseTo((one.health.of(targetOf(endpoint('east'))).firstTokenSeconds?.p50 ?? 0) * 1_000, 0);
  expect(of('east')?.tokensPerSecond?.p90).toBeCloseTo(one.health.of(targetOf(endpoint('east'))).tokensPerSecond?.p90 ?? 0, 0);
  expect(of('west')).toMatchObject({ status: -2, latencyMs: null });
  expect([of('south')?.status, of('south', 'another model')?.status]).toEqual([-2, -2]);
  expect(of('north')).toEqual({ status: 0, latencyMs: null, tokensPerSecond: null, uptime: { last5m: null, last30m: null, last1d: null } });
  expect(of('elsewhere')).toBeNull();
});

it('has the share of attempts that did not fail, of all workers, in some 5 and 30 minutes and in a day', async () => {
  const minutes = (count: number) => {
    nowMs += count * 60_000;
  };
  const [one, two] = [worker(), worker()];
  const shared = new SharedHealth({ cache, clock });
  const uptime = async () => {
    // Each fifth round writes what only lists show.
    for (let round = 0; round < 6; round += 1) for (const { exchange } of [one, two]) await exchange.round();
    nowMs += 2_000;
    await shared.refresh();
    return shared.of(endpoint('east'))?.uptime;
  };
  one.attempt(endpoint('east'), 4, down);
  two.attempt(endpoint('east'), 16);
  expect(await uptime()).toEqual({ last5m: 80, last30m: 80, last1d: 80 });

  // Three attempts each say nothing of 5 minutes.
  for (let times = 0; times < 3; times += 1) {
    minutes(4);
    for (const each of [one, two]) each.attempt(endpoint('east'), 1);
  }
  expect(await uptime()).toEqual({ last5m: null, last30m: 84.62, last1d: 84.62 });

  one.attempt(endpoint('east'), 10, down);
  expect(await uptime()).toEqual({ last5m: 28.57, last30m: 61.11, last1d: 61.11 });
  minutes(31);
  expect(await uptime()).toEqual({ last5m: null, last30m: null, last1d: 61.11 });
  minutes(24 * 60);
  expect(await uptime()).toBeUndefined();
});

it('has the speeds of some 30 minutes, where decisions have those of five', async () => {
  const { health, exchange, attempt } = worker();
  attempt(endpoint('east'), 25);
  nowMs += 20 * 60_000;
  for (let round = 0; round < 2; round += 1) await exchange.round();
  const shared = new SharedHealth({ cache, clock });
  await shared.refresh();
  expect(health.of(targetOf(endpoint('east')))).toMatchObject({ tokensPerSecond: null, firstTokenSeconds: null });
  expect(Math.abs((shared.of(endpoint('east'))?.latencyMs?.p50 ?? 0) / 500 - 1)).toBeLessThan(0.2);
  expect(Math.abs((shared.of(endpoint('east'))?.tokensPerSecond?.p90 ?? 0) / 100 - 1)).toBeLessThan(0.2);

  nowMs += 11 * 60_000;
  for (let round = 0; round < 5; round += 1) await exchange.round();
  await shared.refresh();
  expect(shared.of(endpoint('east'))).toMatchObject({ latencyMs: null, tokensPerSecond: null });
});

it('is read every 2 s at most, waited for at most a moment, and forgotten 10 s after the cache was lost', async () => {
  const { attempt, exchange } = worker();
  attempt(endpoint('east'), 20);
  await exchange.round();
  let reads = 0;
  let answer: () => Promise<(string | null)[]> = () => cache.getMany(Array.from({ length: 64 }, (_, index) => `health:${index}`));
  const counted = new Proxy(cache, {
    get: (target, name) => {
      if (name !== 'getMany') return Reflect.get(target, name);
      return () => {
        reads += 1;
        return answer();
      };
    },
  });
  const shared = new SharedHealth({ cache: counted, clock });
  await Promise.all([shared.refresh(), shared.refresh()]);
  await shared.refresh();
  expect([reads, shared.of(endpoint('east'))?.status]).toEqual([1, 0]);

  nowMs += 2_000;
  answer = () => Promise.reject(new SwitchyardError('service.unreachable', 'Redis did not answer'));
  await shared.refresh();
  expect([reads, shared.of(endpoint('east'))?.status]).toEqual([2, 0]);
  nowMs += 10_000;
  await shared.refresh();
  expect(shared.of(endpoint('east'))).toBeNull();
  answer = () => new Promise(() => {});
  await shared.refresh();
  expect(shared.of(endpoint('east'))).toBeNull();
});

it('passes over what is no report', async () => {
  const entry = ['x', 20, 8, 0, 0, 0, 5_000, [], []];
  for (const [index, text] of [
    '{',
    '5',
    '{"v":2,"w":"w","c":[],"e":[]}',
    JSON.stringify({ v: 1, w: 'w', c: [5], e: [null, ['x'], [...entry.slice(0, 8), 'x']] }),
  ].entries()) {
    await cache.set(`health:${index}`, text, 10_000);
  }
  const shared = new SharedHealth({ cache, clock });
  await shared.refresh();
  expect(shared.of(endpoint('east'))).toBeNull();
});
