import { BUCKETS } from '#shared/health/log-buckets.ts';
import { type MeasuredSpeed, measuredSpeedOf } from '#shared/health/measured-speed.ts';
import type { HealthSnapshot, SharedEndpoint } from './health-snapshot.ts';

/** Bound of what other workers report. */
const MAX_ENDPOINTS = 20_000;

/** The sum of what other workers have seen of an endpoint. */
export interface OthersEndpoint {
  samples: number;
  failures: number;
  /** Of the last of them. */
  openUntilMs: number;
  refusedUntilMs: number;
  cooldownUntilMs: number;
  stickyUntilMs: number;
  firstToken: Uint32Array | null;
  throughput: Uint32Array | null;
}

/** What other workers have seen. */
export class OthersHealth {
  readonly endpoints = new Map<string, OthersEndpoint>();
  /** Until when providers are said to refuse the credential. */
  readonly credentials = new Map<string, number>();
  readonly #speeds = new Map<string, MeasuredSpeed>();

  constructor(snapshots: readonly HealthSnapshot[] = []) {
    for (const { endpoints, credentials } of snapshots) {
      for (const endpoint of endpoints) this.#add(endpoint);
      for (const { provider, untilMs } of credentials) {
        if (this.credentials.size < MAX_ENDPOINTS) this.credentials.set(provider, Math.max(untilMs, this.credentials.get(provider) ?? untilMs));
      }
    }
  }

  /** Of an endpoint that this worker has not called. */
  speedOf(id: string): MeasuredSpeed | null {
    const known = this.endpoints.get(id);
    if (known === undefined) return null;
    let speed = this.#speeds.get(id);
    if (speed === undefined) {
      speed = measuredSpeedOf(known.firstToken ?? new Uint32Array(BUCKETS), known.throughput ?? new Uint32Array(BUCKETS));
      this.#speeds.set(id, speed);
    }
    return speed;
  }

  #add(shared: SharedEndpoint): void {
    const known = this.endpoints.get(shared.id);
    if (known === undefined && this.endpoints.size >= MAX_ENDPOINTS) return;
    const sum = known ?? {
      ...{ samples: 0, failures: 0, openUntilMs: 0, refusedUntilMs: 0, cooldownUntilMs: 0, stickyUntilMs: 0 },
      ...{ firstToken: null, throughput: null },
    };
    sum.samples += shared.samples;
    sum.failures += shared.failures;
    sum.openUntilMs = Math.max(sum.openUntilMs, shared.openUntilMs);
    sum.refusedUntilMs = Math.max(sum.refusedUntilMs, shared.refusedUntilMs);
    sum.cooldownUntilMs = Math.max(sum.cooldownUntilMs, shared.cooldownUntilMs);
    sum.stickyUntilMs = Math.max(sum.stickyUntilMs, shared.stickyUntilMs);
    sum.firstToken = added(sum.firstToken, shared.firstToken);
    sum.throughput = added(sum.throughput, shared.throughput);
    this.endpoints.set(shared.id, sum);
  }
}

function added(sums: Uint32Array | null, pairs: readonly number[]): Uint32Array | null {
  if (pairs.length === 0) return sums;
  const counts = sums ?? new Uint32Array(BUCKETS);
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const bucket = pairs[at] ?? 0;
    if (bucket < BUCKETS) counts[bucket] = (counts[bucket] ?? 0) + (pairs[at + 1] ?? 0);
  }
  return counts;
}
