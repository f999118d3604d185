import type { Clock } from '#shared/clock.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { healthIdOf } from '#shared/health/health-id.ts';
import { BUCKETS } from '#shared/health/log-buckets.ts';
import { type MeasuredSpeed, measuredSpeedOf, NOT_MEASURED } from '#shared/health/measured-speed.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics, Sample } from '#shared/telemetry/metrics.ts';
import { configuredSpeeds, type EndpointHealth, type HealthView } from '../health-view.ts';
import { AttemptHealth } from './attempt-health.ts';
import { Breaker, credentialLimits } from './breaker.ts';
import { EndpointRecord } from './endpoint-record.ts';
import { listedText, snapshotText } from './health-snapshot.ts';
import { OthersHealth } from './others-health.ts';
import { isOutage } from './outage-window.ts';

/** Beyond it the one that was added first is forgotten. */
const MAX_ENDPOINTS = 20_000;
/** Lists of endpoints show the uptime of a day. */
const FORGOTTEN_AFTER_MS = 86_400_000;
/** An alarm that no call has confirmed since is no alarm, but for a model that its provider does not have. */
const ALARM_MS = 300_000;
/** Afterwards other workers need not know of it: the longest window that they share. */
const UNSHARED_AFTER_MS = 1_800_000;
/** A success of this worker is newer than what others report: their network may be at fault. */
const OWN_SUCCESS_MS = 5_000;
/** Percentiles are computed again after this. */
const SPEED_VALID_MS = 1_000;
/** After the last success of a conversation. */
const STICKY_MS = 600_000;

export interface HealthDeps {
  /** Monotonic: a clock that is set back would keep breakers open for as long. */
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

/** An endpoint, as decisions and attempts have it. */
export interface HealthTarget {
  model: { id: string };
  endpoint: EndpointConfig;
  provider: { slug: string };
}

interface Known {
  record: EndpointRecord;
  speedAtMs: number;
  speed: MeasuredSpeed;
}

/**
 * What this worker knows of endpoints: what its own attempts have shown, and what other workers have reported (health-exchange.ts). All of it is in memory. It
 * outlives a reload of the configuration, since endpoints are known by provider and upstream model.
 */
export class Health implements HealthView {
  readonly #deps: HealthDeps;
  readonly #endpoints = new Map<string, Known>();
  /** By provider. */
  readonly #credentials = new Map<string, Breaker>();
  readonly #unwatch: () => void;
  #others = new OthersHealth();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#unwatch = deps.metrics.watch('endpointsDown', () => this.#down());
  }

  stop(): void {
    this.#unwatch();
  }

  of({ endpoint, provider }: Pick<HealthTarget, 'endpoint' | 'provider'>): EndpointHealth {
    const nowMs = this.#deps.clock.nowMs();
    const id = healthIdOf(endpoint);
    const known = this.#endpoints.get(id);
    const configured = configuredSpeeds.of({ endpoint });
    const speed = this.#speedOf(id, known, nowMs);
    const isFailing = this.#isFailing(id, known?.record, nowMs);
    return {
      isHealthy: !isFailing && !this.#isInOutage(id, known?.record, nowMs),
      isOpen: isFailing || this.#isRefused(id, provider.slug, known?.record, nowMs),
      tokensPerSecond: speed.tokensPerSecond ?? configured.tokensPerSecond,
      firstTokenSeconds: speed.firstTokenSeconds ?? configured.firstTokenSeconds,
    };
  }

  /** Null: there are too few samples. */
  firstTokenP95Ms({ endpoint }: Pick<HealthTarget, 'endpoint'>): number | null {
    const id = healthIdOf(endpoint);
    const seconds = this.#speedOf(id, this.#endpoints.get(id), this.#deps.clock.nowMs()).firstTokenP95Seconds;
    return seconds === null ? null : seconds * 1_000;
  }

  /** Before each attempt. */
  begin(target: HealthTarget): AttemptHealth {
    const nowMs = this.#deps.clock.nowMs();
    const record = this.#recordOf(target);
    record.usedAtMs = nowMs;
    record.model = target.model.id;
    return new AttemptHealth(record, this.#credentialOf(target.provider.slug), this.#deps);
  }

  /** A conversation without a session was bound to the endpoint. */
  noteSticky(target: HealthTarget): void {
    this.#recordOf(target).stickyUntilMs = this.#deps.clock.nowMs() + STICKY_MS;
  }

  /** Whether conversations without a session may be bound to one of them, by any worker. */
  hasSticky(targets: readonly Pick<HealthTarget, 'endpoint'>[]): boolean {
    const nowMs = this.#deps.clock.nowMs();
    return targets.some(({ endpoint }) => {
      const id = healthIdOf(endpoint);
      return nowMs < (this.#endpoints.get(id)?.record.stickyUntilMs ?? 0) || nowMs < (this.#others.endpoints.get(id)?.stickyUntilMs ?? 0);
    });
  }

  /** For other workers, at most 60,000 characters. */
  snapshot(worker: string): string {
    const nowMs = this.#deps.clock.nowMs();
    this.#forgetUnused(nowMs);
    const records = [...this.#endpoints.values()].flatMap(({ record }) => (isRemembered(record, UNSHARED_AFTER_MS, nowMs) ? [record] : []));
    return snapshotText(worker, records, this.#credentials, nowMs);
  }

  /** For lists of endpoints, likewise. */
  listed(worker: string): string {
    const records = [...this.#endpoints.values()].map(({ record }) => record);
    return listedText(worker, records, this.#deps.clock.nowMs());
  }

  /** Replaces what other workers have seen. */
  learn(others: OthersHealth): void {
    this.#others = others;
  }

  #isFailing(id: string, own: EndpointRecord | undefined, nowMs: number): boolean {
    if (own?.outage.isOpenAt(nowMs)) return true;
    return nowMs < (this.#others.endpoints.get(id)?.openUntilMs ?? 0) && !hasJustSucceeded(own, nowMs);
  }

  /** Of a closed breaker; before a trial the attempts since then would demote the endpoint, and no trial would be made. */
  #isInOutage(id: string, own: EndpointRecord | undefined, nowMs: number): boolean {
    const sums = own === undefined ? { samples: 0, failures: 0 } : own.window.sums(nowMs);
    const theirs = this.#others.endpoints.get(id);
    if (theirs === undefined) return isOutage(sums);
    return isOutage({ samples: sums.samples + theirs.samples, failures: sums.failures + theirs.failures });
  }

  #isRefused(id: string, provider: string, own: EndpointRecord | undefined, nowMs: number): boolean {
    if (own !== undefined && (nowMs < own.cooldownUntilMs || own.refusal.isOpenAt(nowMs))) return true;
    if (this.#credentials.get(provider)?.isOpenAt(nowMs)) return true;
    const theirs = this.#others.endpoints.get(id);
    if (nowMs < (theirs?.cooldownUntilMs ?? 0)) return true;
    const refusedUntilMs = Math.max(theirs?.refusedUntilMs ?? 0, this.#others.credentials.get(provider) ?? 0);
    return nowMs < refusedUntilMs && !hasJustSucceeded(own, nowMs);
  }

  #speedOf(id: string, known: Known | undefined, nowMs: number): MeasuredSpeed {
    if (known === undefined) return this.#others.speedOf(id) ?? NOT_MEASURED;
    if (nowMs - known.speedAtMs < SPEED_VALID_MS) return known.speed;
    const theirs = this.#others.endpoints.get(id);
    const [firstToken, throughput] = (['firstToken', 'throughput'] as const).map((which) => {
      const sums = theirs?.[which]?.slice() ?? new Uint32Array(BUCKETS);
      known.record[which].addTo(sums, nowMs);
      return sums;
    }) as [Uint32Array, Uint32Array];
    known.speed = measuredSpeedOf(firstToken, throughput);
    known.speedAtMs = nowMs;
    return known.speed;
  }

  #recordOf({ model, endpoint, provider }: HealthTarget): EndpointRecord {
    const id = healthIdOf(endpoint);
    const known = this.#endpoints.get(id);
    if (known !== undefined) return known.record;
    const [first] = this.#endpoints.keys();
    if (first !== undefined && this.#endpoints.size >= MAX_ENDPOINTS) this.#endpoints.delete(first);
    const record = new EndpointRecord(id, model.id, provider.slug);
    this.#endpoints.set(id, { record, speed: NOT_MEASURED, speedAtMs: Number.NEGATIVE_INFINITY });
    return record;
  }

  #credentialOf(provider: string): Breaker {
    let credential = this.#credentials.get(provider);
    if (credential === undefined) {
      credential = new Breaker(credentialLimits);
      this.#credentials.set(provider, credential);
    }
    return credential;
  }

  #forgetUnused(nowMs: number): void {
    for (const [id, { record }] of this.#endpoints) if (!isRemembered(record, FORGOTTEN_AFTER_MS, nowMs)) this.#endpoints.delete(id);
  }

  /** What this worker has seen by itself: others report their own. */
  #down(): Sample<'endpointsDown'>[] {
    const nowMs = this.#deps.clock.nowMs();
    const samples: Sample<'endpointsDown'>[] = [];
    for (const { record } of this.#endpoints.values()) {
      if (!isRemembered(record, ALARM_MS, nowMs)) continue;
      const { model, provider } = record;
      const reasons = {
        outage: record.outage.stateAt(nowMs) !== 'closed' || isOutage(record.window.sums(nowMs)),
        rate_limit: nowMs < record.cooldownUntilMs,
        credential: this.#credentials.get(provider)?.stateAt(nowMs) !== 'closed',
        model: record.refusal.stateAt(nowMs) !== 'closed',
      };
      for (const reason of ['outage', 'rate_limit', 'credential', 'model'] as const) {
        if (reasons[reason]) samples.push({ labels: { model, provider, reason }, value: 1 });
      }
    }
    return samples;
  }
}

function hasJustSucceeded(own: EndpointRecord | undefined, nowMs: number): boolean {
  return own !== undefined && nowMs - own.succeededAtMs < OWN_SUCCESS_MS;
}

/** Whether it was used in that time, or has a state that lasts: an alarm of a model stays until the provider accepts a call. */
function isRemembered(record: EndpointRecord, forMs: number, nowMs: number): boolean {
  if (nowMs - record.usedAtMs <= forMs || record.refusal.stateAt(nowMs) !== 'closed') return true;
  return nowMs < Math.max(record.cooldownUntilMs, record.stickyUntilMs);
}
