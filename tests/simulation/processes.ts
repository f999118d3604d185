import type { RuntimeStore } from '../../actors/store/runtime-store.ts';
import type { Bus } from '../../bus/bus.ts';
import { ReceivedAborts } from '../../bus/received-aborts.ts';
import { effectLease } from '../../bus/renew-lease.ts';
import { startActorHost } from '../../services/actor-host/service.ts';
import { deliveryItems } from '../../services/effect-worker/deliveries/delivery-items.ts';
import { Slots } from '../../services/effect-worker/tools/slots.ts';
import { toolItems } from '../../services/effect-worker/tools/tool-items.ts';
import { callItems } from '../../services/router-worker/call-items.ts';
import { CallWatch } from '../../services/router-worker/call-watch.ts';
import type { OpenedSetup } from '../../services/router-worker/router-setup.ts';
import { Setups } from '../../services/router-worker/setups.ts';
import { consumeKind } from '../../services/work/consume-kind.ts';
import { RunningItems } from '../../services/work/running-items.ts';
import type { Clock } from '../../shared/clock.ts';
import { BundleCache } from '../../shared/config/bundle-cache.ts';
import { bundleStore } from '../../shared/config/bundle-store.ts';
import { fixed } from '../../shared/config/living.ts';
import type { Database } from '../../shared/storage/database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { noMetrics } from '../../shared/telemetry/metrics.ts';
import { noTracing } from '../../shared/telemetry/tracing.ts';
import { type Environment, TOOLS } from './environment.ts';
import type { Process } from './scheduler.ts';

/** Intervals five times a host's defaults, so that minutes cost few steps; in the same order of size. */
const TIMES = { beatMs: 5_000, expiresAfterMs: 25_000, dropAfterMs: 20_000, cutOffMs: 30_000, callSilenceMs: 15_000 };
const PURGE_EVERY_MS = 15_000;
const COALESCE_MS = 5_000;
const TURN_TIMEOUT_MS = 40_000;
/** Between two heartbeats of a worker: three are the silence at which a call counts as lost. */
const ASK_MS = 5_000;
const MAX_ATTEMPTS = 3;
const CONCURRENCY = 4;
const BODY_BYTES = 1_000_000;

const EVENT_URL = 'https://example.com/events';

/** Dependencies of a process. */
export interface Footing {
  process: Process;
  bus: Bus;
  /** Of the runtime. */
  store: RuntimeStore;
  /** Of the workers. */
  database: Database;
  clock: Clock;
  environment: Environment;
  /** The events of all sessions are posted. */
  hasEventWebhook: boolean;
}

/** An actor host, wired as in its service. */
export function hostOn({ process, bus, store, clock, hasEventWebhook }: Footing): Promise<{ stop(): Promise<void> }> {
  return startActorHost({
    config: {
      ...{ coalesceMs: COALESCE_MS, turnTimeoutMs: TURN_TIMEOUT_MS, drainTimeoutMs: 0, streaming: false },
      ...{ maxTokens: 1_000, providerOrder: [], modelKey: 'sha256:none' },
      eventWebhooks: { deployment: hasEventWebhook ? { url: EVENT_URL, kinds: null } : null, maxAttempts: MAX_ATTEMPTS },
      ...{ hostId: process.id, times: TIMES, purgeEveryMs: PURGE_EVERY_MS },
    },
    // The simulation does not distinguish gateways from workers.
    check: { accepts: () => true },
    ...{ bus, store, clock, log: silentLog },
  });
}

/** A worker of every kind: leases and settling are the product's; its calls go to the simulated environment. */
export function workerOn({ process, bus, database, clock, environment }: Footing): void {
  const running = new RunningItems();
  const shared = { bus, database, clock, log: silentLog, metrics: noMetrics, tracing: noTracing, running };
  const watch = new CallWatch({ bus, clock, heartbeatMs: ASK_MS });
  // `environment` and `process` are used by the replacement of executeCall (load-simulation.ts) only.
  // Metrics look up the model that a call named.
  const catalogue = { names: { resolve: () => null }, modelEndpoints: new Map() };
  const setup = { upstreams: new Map(), adapters: new Map(), timeouts: {}, catalogue } as unknown as OpenedSetup;
  const calls = { ...shared, actorClock: clock, watch, environment, process, setups: new Setups({ setup: fixed(setup), log: silentLog }) };
  const limits = { concurrency: CONCURRENCY, bodyBytes: BODY_BYTES };
  consumeKind(callItems('router.turn', limits, calls as unknown as Parameters<typeof callItems>[2]), shared);

  const bundles = new BundleCache(bundleStore(database));
  const variables = { AGENT_API_KEY: 'key' };
  const poster = environment.posterOf(process);
  const effects = { ...shared, running: new RunningItems() };
  const items = { ...effects, intervalClock: clock, bundles, concurrency: CONCURRENCY, lease: effectLease };
  consumeKind(deliveryItems({ ...items, environment: variables, poster, maxAttempts: MAX_ATTEMPTS, timeoutMs: 10_000 }), effects);
  const aborts = new ReceivedAborts({ notices: bus.notices, clock });
  const { servers, lists } = toolServerOf(process, environment);
  const external = { search: async () => [] } as unknown as ToolDeps['external'];
  const knowledgeBases = {
    search: (_: unknown, vector: string, signal: AbortSignal) => environment.search(process, vector, signal),
  } as unknown as ToolDeps['knowledgeBases'];
  consumeKind(
    toolItems({ ...items, servers, lists, external, knowledgeBases, environment: variables, timeoutMs: 60_000, longestMs: 300_000, aborts, content: 'off' }),
    effects,
  );
}

type ToolDeps = Parameters<typeof toolItems>[0];

/** One tool server, always connected, with one list. */
function toolServerOf(process: Process, environment: Environment): Pick<ToolDeps, 'servers' | 'lists'> {
  const connection = {
    era: { kind: 'legacy' },
    request: (_method: string, params: { name: string; arguments: Record<string, unknown> }, _schema: unknown, { signal }: { signal: AbortSignal }) =>
      environment.callTool(process, params.name, params.arguments, signal),
  };
  const server = { slots: new Slots(CONCURRENCY), isListStale: false, connected: (work: (one: typeof connection) => Promise<unknown>) => work(connection) };
  const servers = { of: () => server };
  const lists = {
    current: async () => ({ listHash: 'h1' }),
    tool: async (_: string, name: string) => TOOLS.find((tool) => tool.name === name) ?? null,
  };
  return { servers, lists } as unknown as Pick<ToolDeps, 'servers' | 'lists'>;
}
