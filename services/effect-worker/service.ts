import type { Bus, Subscription } from '#bus/bus.ts';
import { ReceivedAborts } from '#bus/received-aborts.ts';
import { effectLease, type LeaseTimes } from '#bus/renew-lease.ts';
import type { Clock } from '#shared/clock.ts';
import { agentApiKey } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { Deadlines } from '#shared/deadlines.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Drained } from '#shared/lifecycle/drained.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { Bundles } from './bundles.ts';
import { type ConsumeDeps, consumeItems } from '#services/work/consume-kind.ts';
import { deliveryItems } from './deliveries/deliver.ts';
import { RunningItems } from '#services/work/running-items.ts';
import { discoverTools } from './tools/discover-tools.ts';
import { toolItems } from './tools/tool-items.ts';
import { ToolLists } from './tools/tool-lists.ts';
import { ToolServers } from './tools/tool-servers.ts';

/** Items in flight. One limit per kind: slow tools never delay callbacks. */
const DEFAULT_CONCURRENCY = { tool: 128, delivery: 256 };
const DEFAULT_TIMEOUTS = { toolCallMs: 60_000, longestToolCallMs: 300_000, deliveryMs: 10_000 };

export interface EffectWorkerConfig {
  kinds: readonly ('tool' | 'delivery')[];
  maxDeliveryAttempts: number;
  /** The rest is redelivered. */
  drainTimeoutMs: number;
  concurrency?: { tool: number; delivery: number };
  lease?: LeaseTimes;
  /** Tool call since its last progress, tool call in all, one delivery attempt. */
  timeouts?: Partial<typeof DEFAULT_TIMEOUTS>;
}

export interface EffectWorkerDeps {
  config: EffectWorkerConfig;
  /** Secrets that configurations reference. */
  environment: Environment;
  bus: Bus;
  database: Database;
  /** Closed by the caller, after the worker. */
  poster: Pick<GuardedPoster, 'post'>;
  clock: Clock;
  log: Log;
  metrics?: Metrics;
  tracing?: Tracing;
}

/**
 * Starts the worker for all external effects but model calls: tool calls and callback deliveries.
 * @throws `config.invalid` naming the variable when the agent's key, which callbacks carry, is not set
 */
export async function startEffectWorker(deps: EffectWorkerDeps): Promise<Drained> {
  const { config, environment, bus, database, poster, clock, log, metrics = noMetrics, tracing = noTracing } = deps;
  const { kinds, maxDeliveryAttempts: maxAttempts, concurrency = DEFAULT_CONCURRENCY, lease = effectLease } = config;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...config.timeouts };
  const bundles = new Bundles(database);
  const running = new RunningItems({ clock });
  const consume: ConsumeDeps = { bus, database, clock, deadlines: new Deadlines(), log, metrics, running, tracing, lease };
  const stops: (() => Promise<void>)[] = [];
  const consumers: Subscription[] = [];

  if (kinds.includes('delivery')) {
    const newest = await bundles.newest();
    // Fails at the start rather than at the first callback.
    if (newest !== null) agentApiKey(newest, environment);
    const items = deliveryItems({ database, bundles, environment, poster, maxAttempts, timeoutMs: timeouts.deliveryMs, clock, log, metrics, tracing });
    consumers.push(consumeItems(items, concurrency.delivery, consume));
  }
  if (kinds.includes('tool')) {
    const servers = new ToolServers({ environment, clock });
    const lists = new ToolLists({ database, servers, clock, log });
    const discovery = discoverTools({ bundles, lists, log });
    const aborts = new ReceivedAborts({ notices: bus.notices, clock });
    const { toolCallMs: timeoutMs, longestToolCallMs: longestMs } = timeouts;
    const items = toolItems({ database, bundles, servers, lists, timeoutMs, longestMs, aborts, clock, log, metrics, content: tracing.content });
    consumers.push(consumeItems(items, concurrency.tool, consume));
    stops.push(async () => {
      await Promise.all([discovery.stop(), lists.stop(), aborts.stop()]);
      await servers.close();
    });
  }
  const unwatch = metrics.watch('queueDepth', async () => {
    const depths = await bus.work.depths();
    return kinds.map((kind) => ({ labels: { kind }, value: depths[kind] }));
  });
  return {
    async stop(withinMs = config.drainTimeoutMs) {
      unwatch();
      const drainTimer = setTimeout(() => running.loseAllLeases(), withinMs);
      await Promise.all(consumers.map((consumer) => consumer.stop()));
      clearTimeout(drainTimer);
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}
