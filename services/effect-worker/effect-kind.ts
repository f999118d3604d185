import type { Bus, WorkKind } from '#bus/bus.ts';
import type { LeaseTimes } from '#bus/renew-lease.ts';
import type { AnyItemKind } from '#services/work/item-kind.ts';
import type { Clock } from '#shared/clock.ts';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { OpenKnowledgeBase } from './search/knowledge-bases.ts';

/** What a kind of this worker may use. */
export interface EffectKindDeps {
  /** Secrets that configurations reference. */
  environment: Environment;
  bus: Bus;
  database: Database;
  bundles: BundleCache;
  /** Of the start; null: what it needs is checked with the first item. */
  bundle: Pick<Bundle, 'body'> | null;
  openKnowledgeBase: OpenKnowledgeBase;
  poster: Pick<GuardedPoster, 'post'>;
  clock: Clock;
  /** Monotonic: for lengths of time, which setting a machine's clock leaves alone. */
  intervalClock: Clock;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
  lease: LeaseTimes;
  /** Null: the kind's default. */
  concurrency: number | null;
  timeouts: Partial<Record<'toolCallMs' | 'longestToolCallMs' | 'deliveryMs', number>>;
  maxDeliveryAttempts: number;
}

/** A row of the table of kinds. */
export interface EffectKindRow {
  name: WorkKind;
  /** @throws `config.invalid` when it can't work */
  open(deps: EffectKindDeps): Promise<OpenEffectKind>;
}

export interface OpenEffectKind {
  items: AnyItemKind;
  /** After its last item. */
  close(): Promise<void>;
}
