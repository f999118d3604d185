import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { Percentiles } from '#shared/health/measured-speed.ts';
import type { ModelEndpoint } from './model-endpoint.ts';

export interface EndpointHealth {
  /** No significant outage in the last 30 s. */
  isHealthy: boolean;
  /** Breaker open, cooling down after 429, dead credential or missing model. */
  isOpen: boolean;
  /** Measured over 5 minutes; before 20 samples the configured `speed`, all four alike. Null: not known. */
  tokensPerSecond: Percentiles | null;
  firstTokenSeconds: Percentiles | null;
}

/** What is known of endpoints at the moment of a decision. Reads memory alone. */
export interface HealthView {
  of(modelEndpoint: ModelEndpoint): EndpointHealth;
}

/** Every endpoint is healthy, and as quick as the configuration says. */
export const configuredSpeeds = {
  of: ({ endpoint: { speed } }: { endpoint: Pick<EndpointConfig, 'speed'> }): EndpointHealth => ({
    isHealthy: true,
    isOpen: false,
    tokensPerSecond: alike(speed?.tokens_per_second),
    firstTokenSeconds: alike(speed?.first_token_seconds),
  }),
} satisfies HealthView;

function alike(value: number | undefined): Percentiles | null {
  return value === undefined ? null : { p50: value, p75: value, p90: value, p99: value };
}
