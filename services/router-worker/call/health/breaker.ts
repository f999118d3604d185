export interface BreakerLimits {
  /** Failures in a row that open it. */
  failures: number;
  /** How long it stays open before a trial. */
  openMs: number;
  /** A trial that takes longer lets another one begin. */
  trialMs: number;
}

/** Of an endpoint that fails. Five failures and the trials of 40 s are fewer than ten attempts; a trial each 15 s finds an endpoint that has recovered. */
export const outageLimits: BreakerLimits = { failures: 5, openMs: 15_000, trialMs: 10_000 };
/** Of a credential that the provider refuses (401, 402). A refusal is about the credential alone, so that the first one counts. */
export const credentialLimits: BreakerLimits = { failures: 1, openMs: 60_000, trialMs: 10_000 };
/** Of a model that the provider does not have or permit (403, 404). What one caller asks for may be refused with these, too: three in a row count. */
export const refusalLimits: BreakerLimits = { failures: 3, openMs: 60_000, trialMs: 10_000 };

/** `opened` and `closed` once per outage: a trial that fails is no change. */
export type BreakerChange = 'opened' | 'closed' | null;

/**
 * A circuit breaker. Closed: failures in a row open it. Open: until its time is over. Half-open: one trial at a time, whose success closes it and whose failure
 * opens it again. Attempts that began before it opened decide nothing.
 */
export class Breaker {
  readonly #limits: BreakerLimits;
  #failures = 0;
  #isClosed = true;
  /** Of its last opening, or its last closing. */
  #changedAtMs = Number.NEGATIVE_INFINITY;
  #openUntilMs = Number.NEGATIVE_INFINITY;
  #trialUntilMs = Number.NEGATIVE_INFINITY;

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  stateAt(nowMs: number): 'closed' | 'open' | 'half-open' {
    if (this.#isClosed) return 'closed';
    return nowMs < this.#openUntilMs ? 'open' : 'half-open';
  }

  /** False while half-open and without a trial: the next attempt is the trial. */
  isOpenAt(nowMs: number): boolean {
    return !this.#isClosed && (nowMs < this.#openUntilMs || nowMs < this.#trialUntilMs);
  }

  /** Of its last opening; an earlier time when it is closed. */
  get openUntilMs(): number {
    return this.#isClosed ? Number.NEGATIVE_INFINITY : this.#openUntilMs;
  }

  /** An attempt begins. @returns whether it is the trial, which must be ended with one of the three that follow */
  begin(nowMs: number): boolean {
    if (this.stateAt(nowMs) !== 'half-open' || nowMs < this.#trialUntilMs) return false;
    this.#trialUntilMs = nowMs + this.#limits.trialMs;
    return true;
  }

  /** The trial says nothing about it, for example because the caller aborted it. */
  release(isTrial: boolean): void {
    if (isTrial) this.#trialUntilMs = Number.NEGATIVE_INFINITY;
  }

  succeed(beganAtMs: number, nowMs: number): BreakerChange {
    if (beganAtMs < this.#changedAtMs) return null;
    this.#failures = 0;
    if (this.#isClosed) return null;
    this.#isClosed = true;
    this.#changedAtMs = nowMs;
    this.#trialUntilMs = Number.NEGATIVE_INFINITY;
    return 'closed';
  }

  fail(beganAtMs: number, nowMs: number): BreakerChange {
    if (beganAtMs < this.#changedAtMs) return null;
    if (!this.#isClosed) {
      if (nowMs >= this.#openUntilMs) this.#open(nowMs);
      return null;
    }
    this.#failures += 1;
    if (this.#failures < this.#limits.failures) return null;
    this.#isClosed = false;
    this.#open(nowMs);
    return 'opened';
  }

  #open(nowMs: number): void {
    this.#failures = 0;
    this.#changedAtMs = nowMs;
    this.#openUntilMs = nowMs + this.#limits.openMs;
    this.#trialUntilMs = Number.NEGATIVE_INFINITY;
  }
}
