import { describe, expect, it } from 'vitest';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import type { ProviderAdapter } from '../../providers/provider.ts';
import { runCall } from '../run-call.ts';
import { chosen } from '../test-support/chosen.ts';
import { VectorBudget } from '../vector-budget.ts';
import { Health } from './health.ts';
import { HealthExchange } from './health-exchange.ts';

const WORKERS = 3;
const STEP_MS = 100;
const DOWN_AT_MS = 10_000;
const UP_AT_MS = 50_000;
const END_MS = 90_000;
const EXCHANGE_MS = 2_000;

const prices = { prompt: '1', completion: '2' };
const config = routerConfig.parse({
  providers: ['east', 'west'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [{ id: 'm/a', endpoints: ['east', 'west'].map((provider) => ({ provider, upstream_model: 'a', prices })) }],
  keys: [{ id: 'k', key: '${KEY}' }],
});

interface Seen {
  /** Requests that the upstream failed, by worker. */
  failures: number[];
  /** First answer of the upstream after its recovery, by worker, in milliseconds since then. */
  backAfterMs: number[];
  callsFailed: number;
}

/** Calls of three workers, ten per second each, of which an upstream fails for 40 s. The clock is that of the test. @param isAway whether Redis is, at a time */
async function outage(isAway: (atMs: number) => boolean): Promise<Seen> {
  let nowMs = 1_000_000;
  const startMs = nowMs;
  const at = () => nowMs - startMs;
  const clock = { nowMs: () => nowMs };
  const stored = memoryCache({ clock });
  const cache = new Proxy({} as Cache, {
    get:
      (_, name: keyof Cache) =>
      async (...given: unknown[]) => {
        if (isAway(at())) throw new SwitchyardError('service.unreachable', 'Redis did not answer');
        return (stored[name] as (...all: unknown[]) => unknown)(...given);
      },
  });
  const seen: Seen = { failures: [], backAfterMs: [], callsFailed: 0 };
  const workers = Array.from({ length: WORKERS }, (_, worker) => {
    const health = new Health({ clock, log: silentLog, metrics: noMetrics });
    const adapterOf = (slug: string): ProviderAdapter => ({
      slug,
      upstreamBody: () => ({}),
      async stream(_, _signal, onParts) {
        if (slug === 'east' && at() >= DOWN_AT_MS && at() < UP_AT_MS) {
          seen.failures[worker] = (seen.failures[worker] ?? 0) + 1;
          throw new SwitchyardError('router.provider_unavailable', 'it is down');
        }
        if (slug === 'east' && at() >= UP_AT_MS) seen.backAfterMs[worker] ??= at() - UP_AT_MS;
        onParts([{ type: 'text-delta', text: 'hello' }]);
        onParts([{ type: 'finish', reason: 'stop', nativeReason: 'stop' }]);
      },
    });
    const deps = {
      adapters: new Map(['east', 'west'].map((slug) => [slug, adapterOf(slug)])),
      timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 },
      ...{ vectorBudget: new VectorBudget(), health, log: silentLog, metrics: noMetrics },
    };
    const observer = { retainsAnswer: false, begin: () => {}, parts: () => {} };
    const call = async (seed: string) => {
      const { candidates } = chosen(config, {}, {}, { health, seed });
      const { type } = await runCall({ candidates, partTransforms: [] }, observer, new ItemAbortController(), deps);
      if (type !== 'completed') seen.callsFailed += 1;
    };
    return { call, exchange: new HealthExchange({ cache, health, clock, log: silentLog }) };
  });
  for (; at() < END_MS; nowMs += STEP_MS) {
    // Not all at the same moment.
    for (const [worker, { exchange }] of workers.entries()) if ((at() + 300 * worker) % EXCHANGE_MS === 0) await exchange.round();
    for (const [worker, { call }] of workers.entries()) await call(`gen-${worker}-${at()}`);
  }
  return seen;
}

describe('an outage', () => {
  it.each<[string, (atMs: number) => boolean]>([
    ['with Redis', () => false],
    ['with Redis killed before it fails', (atMs) => atMs >= 5_000],
    ['with Redis killed while it fails', (atMs) => atMs >= 20_000 && atMs < 40_000],
    ['with Redis killed while it recovers', (atMs) => atMs >= 45_000 && atMs < 80_000],
    ['without Redis', () => true],
  ])(
    'DESIGN 8: an upstream that fails for 40 s under load is left after at most ten failures per worker, and taken back within 35 s by all, %s',
    async (_, isAway) => {
      const { failures, backAfterMs, callsFailed } = await outage(isAway);
      expect(callsFailed).toBe(0);
      expect(failures).toHaveLength(WORKERS);
      expect(Math.max(...failures)).toBeLessThanOrEqual(10);
      expect(backAfterMs).toHaveLength(WORKERS);
      expect(Math.max(...backAfterMs)).toBeLessThanOrEqual(35_000);
    },
  );
});
