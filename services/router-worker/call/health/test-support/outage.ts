import { ItemAbortController } from '#services/work/item-signal.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import type { ProviderAdapter } from '../../../providers/provider.ts';
import { runCall } from '../../run-call.ts';
import { chosen } from '../../test-support/chosen.ts';
import { VectorBudget } from '../../vector-budget.ts';
import { Health } from '../health.ts';
import { HealthExchange } from '../health-exchange.ts';

export const WORKERS = 3;
const STEP_MS = 100;
const DOWN_AT_MS = 10_000;
const UP_AT_MS = 50_000;
const END_MS = 90_000;
const STEPS_PER_ROUND = 20;

const prices = { prompt: '1', completion: '2' };
const config = routerConfig.parse({
  providers: ['east', 'west'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [{ id: 'm/a', endpoints: ['east', 'west'].map((provider) => ({ provider, upstream_model: 'a', prices })) }],
  keys: [{ id: 'k', key: '${KEY}' }],
});

export interface Seen {
  /** Requests that the upstream failed, by worker. */
  failures: number[];
  /** First answer of the upstream after its recovery, by worker, in milliseconds since then. */
  backAfterMs: number[];
  callsFailed: number;
}

interface World {
  nowMs(): number;
  /** One step of the test's time. */
  pause(ms: number): Promise<void>;
  cache: Cache;
  /** Whether each worker shares by its own timer; else with the steps. */
  isTimed: boolean;
}

/** Calls of three workers, ten per second each, of which an upstream fails for 40 s. @param onStep with the time since the begin */
export async function outage({ nowMs, pause, cache, isTimed }: World, onStep: (atMs: number) => void = () => {}): Promise<Seen> {
  const startMs = nowMs();
  const at = () => nowMs() - startMs;
  const clock = { nowMs };
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
  for (const { exchange } of workers) if (isTimed) exchange.start();
  for (let step = 0; at() < END_MS; step += 1) {
    onStep(at());
    if (!isTimed) for (const [worker, { exchange }] of workers.entries()) if ((step + 3 * worker) % STEPS_PER_ROUND === 0) await exchange.round();
    for (const [worker, { call }] of workers.entries()) await call(`gen-${worker}-${step}`);
    await pause(STEP_MS);
  }
  for (const { exchange } of workers) exchange.stop();
  return seen;
}
