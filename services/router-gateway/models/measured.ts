import type { EndpointConfig, ModelConfig } from '#shared/config/router-config.ts';
import type { PercentileEntry } from '#shared/contracts/router/model-endpoints.ts';

/** What is known of an endpoint from its calls. Null: too few of them. */
export interface Measured {
  /** As clients know it: 0, or below it for an endpoint that is not asked at present. */
  status: 0 | -2;
  /** Shares of calls that did not fail for the endpoint's own reasons, in percent. */
  uptime30m: number | null;
  uptime5m: number | null;
  uptime1d: number | null;
  latencyMs: PercentileEntry | null;
  tokensPerSecond: PercentileEntry | null;
}

/** Null: nothing is known. */
export type MeasuredOf = (model: ModelConfig, endpoint: EndpointConfig) => Measured | null;

/** Nothing is measured yet: medians that the configuration states stand for it where models are put in order. */
export const notMeasured: MeasuredOf = () => null;
