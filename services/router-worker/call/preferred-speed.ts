import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Percentiles } from '#shared/health/measured-speed.ts';
import type { EndpointHealth } from './health-view.ts';

type Preferences = NonNullable<ChatRequest['provider']>;
type Cutoffs = Preferences['preferred_max_latency'];

/** Whether one of the cutoffs does not hold; an unknown speed misses all. A number is the median's. */
export function missesPreferredSpeed({ tokensPerSecond, firstTokenSeconds }: EndpointHealth, preferences: Preferences): boolean {
  const { preferred_min_throughput: throughput, preferred_max_latency: latency } = preferences;
  return (
    cutoffsIn(throughput).some(([percentile, cutoff]) => (tokensPerSecond?.[percentile] ?? 0) < cutoff) ||
    cutoffsIn(latency).some(([percentile, cutoff]) => (firstTokenSeconds?.[percentile] ?? Number.POSITIVE_INFINITY) > cutoff)
  );
}

function cutoffsIn(given: Cutoffs): readonly (readonly [keyof Percentiles, number])[] {
  if (given === null || given === undefined) return [];
  if (typeof given === 'number') return [['p50', given]];
  const { p50, p75, p90, p99 } = given;
  const all = [
    ['p50', p50],
    ['p75', p75],
    ['p90', p90],
    ['p99', p99],
  ] as const;
  return all.flatMap(([percentile, cutoff]) => (cutoff === undefined ? [] : [[percentile, cutoff] as const]));
}
