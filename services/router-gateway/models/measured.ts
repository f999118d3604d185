import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { PercentileEntry } from '#shared/contracts/router/model-endpoints.ts';

/** What router workers see of an endpoint. Null: too few calls. */
export interface Measured {
  /** As clients know it: 0, -1 for one that fails often, -2 for one that is asked last at present. */
  status: 0 | -1 | -2;
  latencyMs: PercentileEntry | null;
  tokensPerSecond: PercentileEntry | null;
  /** Percent of the attempts that the endpoint did not fail, of some 5 and 30 minutes and of a day. */
  uptime: { last5m: number | null; last30m: number | null; last1d: number | null };
}

export interface MeasuredEndpoints {
  /** Before reading. Never rejects, and waits for a bounded time. */
  refresh(): Promise<void>;
  /** Null: nothing is known. */
  of(endpoint: EndpointConfig): Measured | null;
}

/** Without a cache, workers share nothing. */
export const notMeasured: MeasuredEndpoints = { refresh: async () => {}, of: () => null };
