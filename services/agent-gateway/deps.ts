import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { Waits } from './limits.ts';

export interface AgentGatewayDeps {
  config: {
    host: string;
    /** 0 takes any free port. */
    port: number;
    /** Whether SSE readers get the text of a reply while it is being made. */
    streaming: boolean;
    /** How long a stop waits for requests in hand. */
    drainTimeoutMs: number;
    runs: {
      /** For routines that declare no `timeout_seconds`. */
      defaultTimeoutMs: number;
      /** More is cut down to this. Also how long after its acceptance a run is settled at the latest. */
      maxTimeoutMs: number;
      /** Refuses to start with an autonomous routine whose results may be sent to any host. */
      requireCallbackAllowlist: boolean;
    };
  };
  agent: {
    id: string;
    /** The one shared key of the agent's API. */
    apiKey: string;
    /** Hash of the configuration that new sessions and turns run on; its row must be there before the gateway is ready. */
    bundleHash: string;
  };
  /** The configuration with that hash: which routines there are, and what may be asked of them. */
  bundle: Bundle;
  /**
   * Whether the outcome of a run may be posted there, as far as that can be told without asking a name server.
   * @param hostAllowlist of the routine; null and an empty list both mean any
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
  /** Shorter waiting times, for tests. */
  waits?: Partial<Waits>;
}
