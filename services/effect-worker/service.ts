import type { Bus } from '#bus/bus.ts';
import { effectLease, type LeaseTimes } from '#bus/renew-lease.ts';
import { RunningItems } from '#services/work/running-items.ts';
import { startWorker } from '#services/work/start-worker.ts';
import { type Clock, steadyClock } from '#shared/clock.ts';
import { BundleCache } from '#shared/config/bundle-cache.ts';
import { bundleStore } from '#shared/config/bundle-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Drained } from '#shared/lifecycle/drained.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import type { EffectKindDeps, OpenEffectKind } from './effect-kind.ts';
import { type EffectKind, effectKinds } from './effect-kinds.ts';
import type { OpenKnowledgeBase } from './search/knowledge-bases.ts';

export interface EffectWorkerConfig {
  kinds: readonly EffectKind[];
  maxDeliveryAttempts: number;
  /** The rest is redelivered. */
  drainTimeoutMs: number;
  /** Items in flight; absent: the kind's default. */
  concurrency?: Partial<Record<EffectKind, number>>;
  lease?: LeaseTimes;
  /** Tool call since its last progress, tool call in all, one delivery attempt. */
  timeouts?: EffectKindDeps['timeouts'];
}

export interface EffectWorkerDeps {
  config: EffectWorkerConfig;
  /** Secrets that configurations reference. */
  environment: Environment;
  bus: Bus;
  database: Database;
  /** The configuration that the process has begun with: the start fails where its knowledge base can't be searched. Null and absent: that is not checked. */
  bundle?: Pick<Bundle, 'body'> | null;
  /** The servers of `search`, of type `pgvector`. */
  openKnowledgeBase: OpenKnowledgeBase;
  /** Closed by the caller, after the worker. */
  poster: Pick<GuardedPoster, 'post'>;
  clock: Clock;
  /** For lengths of time, which setting a machine's clock leaves alone. Absent: this process's. */
  intervalClock?: Clock;
  log: Log;
  metrics?: Metrics;
  tracing?: Tracing;
}

/**
 * Starts the worker for all external effects but model calls: tool calls and callback deliveries.
 * @throws `config.invalid` naming the variable when the agent's key, which callbacks carry, is not set, or the field of a knowledge base that can't be searched
 */
export async function startEffectWorker(given: EffectWorkerDeps): Promise<Drained> {
  const { config, metrics = noMetrics, tracing = noTracing } = given;
  const { drainTimeoutMs, lease = effectLease, timeouts = {}, maxDeliveryAttempts } = config;
  const { bundle = null, intervalClock = steadyClock } = given;
  const deps = {
    ...given,
    intervalClock,
    metrics,
    tracing,
    bundle,
    bundles: new BundleCache(bundleStore(given.database)),
    lease,
    timeouts,
    maxDeliveryAttempts,
  };
  const opened: OpenEffectKind[] = [];
  const closeAll = () => Promise.all(opened.map((kind) => kind.close()));
  try {
    for (const { name, open } of effectKinds.filter((row) => config.kinds.includes(row.name)))
      opened.push(await open({ ...deps, concurrency: config.concurrency?.[name] ?? null }));
  } catch (error) {
    await closeAll();
    throw error;
  }
  const worker = startWorker(
    opened.map(({ items }) => items),
    { ...deps, running: new RunningItems(), drainTimeoutMs },
  );
  return {
    async stop(withinMs) {
      await worker.stop(withinMs);
      await closeAll();
    },
  };
}
