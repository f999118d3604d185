import { LOWEST_FIRST_TOKEN, LOWEST_THROUGHPUT } from '#shared/health/log-buckets.ts';
import { Breaker, outageLimits, refusalLimits } from './breaker.ts';
import { DAY_SLICES, OUTAGE_SLICES, SampleWindow, UPTIME_SLICES } from './outage-window.ts';
import { LISTED_SLICES, SpeedWindow } from './speed-window.ts';

/** A 429 without a time. */
const COOLDOWN_MS = 10_000;
/** Servers that name no time are tried again soon; those that name a day are tried again within an hour, since quotas are raised meanwhile. */
const MIN_COOLDOWN_MS = 1_000;
const MAX_COOLDOWN_MS = 3_600_000;

/** What this worker has seen of one endpoint. */
export class EndpointRecord {
  readonly id: string;
  readonly provider: string;
  /** Of its last call. */
  model: string;
  readonly outage = new Breaker(outageLimits);
  /** Of its model. */
  readonly refusal = new Breaker(refusalLimits);
  readonly window = new SampleWindow(OUTAGE_SLICES);
  /** Of all attempts, also the trials of a breaker. */
  readonly uptime = new SampleWindow(UPTIME_SLICES);
  readonly firstToken = new SpeedWindow(LOWEST_FIRST_TOKEN);
  readonly throughput = new SpeedWindow(LOWEST_THROUGHPUT);
  /** For lists of endpoints alone. */
  readonly listed = {
    day: new SampleWindow(DAY_SLICES),
    firstToken: new SpeedWindow(LOWEST_FIRST_TOKEN, LISTED_SLICES),
    throughput: new SpeedWindow(LOWEST_THROUGHPUT, LISTED_SLICES),
  };
  usedAtMs = Number.NEGATIVE_INFINITY;
  succeededAtMs = Number.NEGATIVE_INFINITY;
  cooldownUntilMs = Number.NEGATIVE_INFINITY;
  /** Until when a conversation without a session may be bound to it. */
  stickyUntilMs = Number.NEGATIVE_INFINITY;
  #cooldownSinceMs = Number.NEGATIVE_INFINITY;

  constructor(id: string, model: string, provider: string) {
    this.id = id;
    this.model = model;
    this.provider = provider;
  }

  /** @param retryAfterMs null: the provider has named none @returns whether it did not cool down before */
  cool(retryAfterMs: number | null, nowMs: number): boolean {
    const isNew = nowMs >= this.cooldownUntilMs;
    const forMs = Math.min(MAX_COOLDOWN_MS, Math.max(MIN_COOLDOWN_MS, retryAfterMs ?? COOLDOWN_MS));
    this.#cooldownSinceMs = nowMs;
    this.cooldownUntilMs = isNew ? nowMs + forMs : Math.max(this.cooldownUntilMs, nowMs + forMs);
    return isNew;
  }

  /** An attempt that began during the cooldown, for lack of another endpoint, ends it. */
  succeed(beganAtMs: number, nowMs: number): void {
    this.succeededAtMs = nowMs;
    if (beganAtMs >= this.#cooldownSinceMs) this.cooldownUntilMs = Number.NEGATIVE_INFINITY;
  }

  noteFirstToken(seconds: number, nowMs: number): void {
    this.firstToken.add(seconds, nowMs);
    this.listed.firstToken.add(seconds, nowMs);
  }

  noteThroughput(tokensPerSecond: number, nowMs: number): void {
    this.throughput.add(tokensPerSecond, nowMs);
    this.listed.throughput.add(tokensPerSecond, nowMs);
  }

  /** Of an attempt that has ended, also the trial of a breaker. */
  noteAttempt(isFailure: boolean, nowMs: number): void {
    this.uptime.add(isFailure, nowMs);
    this.listed.day.add(isFailure, nowMs);
  }

  /** Whether something is to be remembered of it beside its speed. */
  isImpairedAt(nowMs: number): boolean {
    return this.outage.stateAt(nowMs) !== 'closed' || this.refusal.stateAt(nowMs) !== 'closed' || nowMs < this.cooldownUntilMs;
  }
}
