import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
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
  };
  agent: {
    id: string;
    /** The one shared key of the agent's API. */
    apiKey: string;
    /** Hash of the configuration that new sessions and turns run on; its row must be there before the gateway is ready. */
    bundleHash: string;
  };
  bus: Bus;
  database: Database;
  cache: Cache;
  log: Log;
  clock: Clock;
  /** Shorter waiting times, for tests. */
  waits?: Partial<Waits>;
}
