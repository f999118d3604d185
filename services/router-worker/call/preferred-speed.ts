import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Percentiles } from '#shared/health/measured-speed.ts';
import type { EndpointHealth } from './health-view.ts';

type Preferences = NonNullable<ChatRequest['provider']>;
type Cutoff = readonly [percentile: keyof Percentiles, value: number];

const NONE: readonly Cutoff[] = [];
const PERCENTILES = ['p50', 'p75', 'p90', 'p99'] as const;

/** Whether an endpoint misses one of the preferred speeds; one of unknown speed misses all. A number is the median's. */
export function slowFor(preferences: ChatRequest['provider']): (health: EndpointHealth) => boolean {
  const throughputs = cutoffsIn(preferences?.preferred_min_throughput);
  const latencies = cutoffsIn(preferences?.preferred_max_latency);
  if (throughputs.length === 0 && latencies.length === 0) return () => false;
  return ({ tokensPerSecond, firstTokenSeconds }) =>
    throughputs.some(([percentile, cutoff]) => (tokensPerSecond?.[percentile] ?? 0) < cutoff) ||
    latencies.some(([percentile, cutoff]) => (firstTokenSeconds?.[percentile] ?? Number.POSITIVE_INFINITY) > cutoff);
}

function cutoffsIn(given: Preferences['preferred_max_latency']): readonly Cutoff[] {
  if (given === null || given === undefined) return NONE;
  if (typeof given === 'number') return [['p50', given]];
  return PERCENTILES.flatMap((percentile): Cutoff[] => {
    const cutoff = given[percentile];
    return cutoff === undefined ? [] : [[percentile, cutoff]];
  });
}
