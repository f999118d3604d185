import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { Deadlines } from '#shared/deadlines.ts';
import type { Drained } from '#shared/lifecycle/drained.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { catalogueOf } from './call/candidates.ts';
import { upstreamsOf } from './call-span.ts';
import { type ConsumeDeps, consumeCalls } from './call-items.ts';
import { openProviders } from './providers/registry.ts';
import { RunningCalls } from './call-watch.ts';

/** In flight; they mostly wait for upstreams. Shares per kind keep clients from starving conversations. */
const DEFAULT_CONCURRENCY = { clientCalls: 1_024, turnCalls: 256 };
/** Byte budgets of requests, held as read and again while sent: a worker stays within a gigabyte. */
const DEFAULT_BODY_BYTES = { clientCalls: 256 * 1024 * 1024, turnCalls: 128 * 1024 * 1024 };
const DEFAULT_DRAIN_TIMEOUT_MS = 30_000;

export interface RouterWorkerDeps {
  config: RouterConfig;
  environment: Environment;
  bus: Bus;
  /** Has the state of actors' effects, for redelivered calls. */
  database: Database;
  log: Log;
  clock: Clock;
  /** The database's clock, for deadlines of actors' calls; absent: `clock`. Gateways have no database, so clients' calls use `clock`. */
  actorClock?: Clock;
  concurrency?: { clientCalls: number; turnCalls: number };
  bodyBytes?: { clientCalls: number; turnCalls: number };
  /** Words per second of the scripted model's streams; 0 or absent: unpaced. */
  scriptedWordsPerSecond?: number;
  /** How long a stop waits for calls in flight before it nacks them. */
  drainTimeoutMs?: number;
  metrics?: Metrics;
  tracing?: Tracing;
}

/** Executes router calls of clients and of actors. @throws `config.invalid` naming the variable of a missing credential */
export async function startRouterWorker(deps: RouterWorkerDeps): Promise<Drained> {
  const { config, environment, bus, database, log, clock, drainTimeoutMs = DEFAULT_DRAIN_TIMEOUT_MS, metrics = noMetrics, tracing = noTracing } = deps;
  const { concurrency = DEFAULT_CONCURRENCY, bodyBytes = DEFAULT_BODY_BYTES, scriptedWordsPerSecond = 0 } = deps;
  const providers = openProviders({ config, environment, clock, scriptedWordsPerSecond });
  const running = new RunningCalls({ bus, clock, actorClock: deps.actorClock ?? clock });
  const { connect_ms: connectMs, first_token_ms: firstTokenMs, idle_ms: idleMs } = config.timeouts;
  const consume: ConsumeDeps = {
    bus,
    database,
    clock,
    deadlines: new Deadlines(),
    log,
    metrics,
    tracing,
    upstreams: upstreamsOf(providers.configured),
    running,
    adapters: providers.adapters,
    timeouts: { connectMs, firstTokenMs, idleMs },
    catalogue: catalogueOf(config, providers.configured),
  };
  const consumers = [
    consumeCalls('router.call', { concurrency: concurrency.clientCalls, bodyBytes: bodyBytes.clientCalls }, consume),
    consumeCalls('router.turn', { concurrency: concurrency.turnCalls, bodyBytes: bodyBytes.turnCalls }, consume),
  ];
  const unwatch = metrics.watch('queueDepth', async () => {
    const depths = await bus.work.depths();
    return (['router.call', 'router.turn'] as const).map((kind) => ({ labels: { kind }, value: depths[kind] }));
  });
  return {
    async stop(withinMs = drainTimeoutMs) {
      unwatch();
      const drainTimer = setTimeout(() => running.loseAllLeases(), withinMs);
      await Promise.all(consumers.map((consumer) => consumer.stop()));
      clearTimeout(drainTimer);
      await running.stop();
      await providers.close();
    },
  };
}
