import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { Waits } from './limits.ts';

/** What the agent gateway needs: settings, the agent's configuration and opened drivers. */
export interface AgentGatewayDeps {
  config: {
    host: string;
    /** 0 takes any free port. */
    port: number;
    /** Whether SSE readers get the text of a reply while it is generated. */
    streaming: boolean;
    /** How long a stop waits for requests in flight. */
    drainTimeoutMs: number;
    runs: {
      /** For routines that declare no `timeout_seconds`. */
      defaultTimeoutMs: number;
      /** Upper bound of a routine's timeout. A run settles at most this long after its acceptance. */
      maxTimeoutMs: number;
      /** Refuses to start with an autonomous routine that has no callback allow-list. */
      requireCallbackAllowlist: boolean;
    };
  };
  agent: {
    id: string;
    /** The shared key of the agent's API. */
    apiKey: string;
    /** Bundle of new sessions and turns; its row must exist before the gateway is ready. */
    bundleHash: string;
  };
  /** The bundle with that hash. */
  bundle: Bundle;
  /**
   * Whether a run's outcome may be posted to this address, as far as can be told without DNS.
   * @param hostAllowlist of the routine; null and an empty list both mean any host
   * @throws `outbound.refused`
   */
  checkCallbackUrl(url: string, hostAllowlist: readonly string[] | null): void;
  bus: Bus;
  database: Database;
  cache: Cache;
  log: Log;
  metrics?: Metrics;
  clock: Clock;
  /** Absent: nothing is recorded. */
  tracing?: Tracing;
  /** Overrides, for tests. */
  waits?: Partial<Waits>;
}
