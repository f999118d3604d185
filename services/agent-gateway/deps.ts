import type { ModelCallSettings } from '#actors/effects/model-calls.ts';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { Waits } from './limits.ts';

/** Dependencies of the agent gateway: settings, the agent's configuration, opened drivers. */
export interface AgentGatewayDeps {
  config: {
    host: string;
    port: number;
    /** Whether SSE readers get deltas. */
    streaming: boolean;
    /** Whether callers' `baggage` is passed on to tool servers. Absent: no. */
    passesBaggage?: boolean;
    drainTimeoutMs: number;
    runs: {
      defaultTimeoutMs: number;
      /** Also how long after its acceptance a run settles at the latest. */
      maxTimeoutMs: number;
      /** Without one an autonomous routine fails the start. */
      requireCallbackAllowlist: boolean;
    };
  };
  agent: {
    id: string;
    apiKey: string;
    /** Bundle of new sessions and turns; its row must exist before the gateway is ready. */
    bundleHash: string;
  };
  /** Of the gateway's own model calls. */
  modelCalls: ModelCallSettings;
  bundle: Bundle;
  /**
   * As far as possible without DNS.
   * @param hostAllowlist of the routine; null and an empty list both mean any host
   * @throws `outbound.refused`
   */
  checkCallbackUrl(url: string, hostAllowlist: readonly string[] | null): void;
  /** The secret of a webhook, `${VAR_NAME}`, as it is at this moment; null: it is not set. Called at every delivery, so that rotating one needs no restart. */
  secretNow(reference: string): string | null | Promise<string | null>;
  bus: Bus;
  database: Database;
  cache: Cache;
  log: Log;
  metrics?: Metrics;
  clock: Clock;
  tracing?: Tracing;
  /** Overrides, for tests. */
  waits?: Partial<Waits>;
}
