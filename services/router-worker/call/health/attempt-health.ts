import type { Clock } from '#shared/clock.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Breaker, BreakerChange } from './breaker.ts';
import type { EndpointRecord } from './endpoint-record.ts';
import { type HealthEffect, healthEffectOf } from './health-effect.ts';

/** Shorter answers come in one read: their tokens are counted over the whole attempt. */
const MIN_GENERATION_MS = 100;

/** How an attempt ended; `aborted`: by its caller, a deadline, or because another attempt was faster. */
export type AttemptVerdict = { how: 'succeeded'; completionTokens: number | null } | { how: 'failed'; error: unknown } | { how: 'aborted' };

/** What one attempt says about its endpoint. `end` is called once, last. */
export class AttemptHealth {
  readonly #record: EndpointRecord;
  readonly #credential: Breaker;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #beganAtMs: number;
  readonly #isOutageTrial: boolean;
  readonly #isRefusalTrial: boolean;
  readonly #isCredentialTrial: boolean;
  #firstAtMs: number | null = null;

  constructor(record: EndpointRecord, credential: Breaker, { clock, log }: { clock: Clock; log: Log }) {
    this.#record = record;
    this.#credential = credential;
    this.#clock = clock;
    this.#log = log;
    const nowMs = clock.nowMs();
    this.#beganAtMs = nowMs;
    this.#isOutageTrial = record.outage.begin(nowMs);
    this.#isRefusalTrial = record.refusal.begin(nowMs);
    this.#isCredentialTrial = credential.begin(nowMs);
  }

  /** The first content came: the endpoint answers, however long the rest takes. */
  answered(): void {
    if (this.#firstAtMs !== null) return;
    const nowMs = this.#clock.nowMs();
    this.#firstAtMs = nowMs;
    this.#record.noteFirstToken((nowMs - this.#beganAtMs) / 1_000, nowMs);
    this.#succeed(nowMs);
  }

  /** Another attempt was faster: its first token would have come later than now. Left out, the measured times would shrink with each such attempt. */
  outrun(): void {
    const nowMs = this.#clock.nowMs();
    if (this.#firstAtMs === null) this.#record.noteFirstToken((nowMs - this.#beganAtMs) / 1_000, nowMs);
  }

  end(verdict: AttemptVerdict): void {
    const nowMs = this.#clock.nowMs();
    if (verdict.how === 'succeeded') {
      this.#sample(false, nowMs);
      this.#succeed(nowMs);
      this.#measure(verdict.completionTokens, nowMs);
    } else if (verdict.how === 'failed') {
      this.#fail(healthEffectOf(verdict.error), verdict.error, nowMs);
    }
    this.#record.outage.release(this.#isOutageTrial);
    this.#record.refusal.release(this.#isRefusalTrial);
    this.#credential.release(this.#isCredentialTrial);
  }

  #measure(completionTokens: number | null, nowMs: number): void {
    if (completionTokens === null || completionTokens < 1 || this.#firstAtMs === null) return;
    const generationMs = nowMs - this.#firstAtMs;
    const spentMs = generationMs < MIN_GENERATION_MS ? nowMs - this.#beganAtMs : generationMs;
    this.#record.noteThroughput((completionTokens * 1_000) / Math.max(1, spentMs), nowMs);
  }

  #succeed(nowMs: number): void {
    const { outage, refusal, window } = this.#record;
    if (this.#logChange(outage.succeed(this.#beganAtMs, nowMs), 'outage') === 'closed') window.clear();
    this.#logChange(refusal.succeed(this.#beganAtMs, nowMs), 'model');
    this.#logChange(this.#credential.succeed(this.#beganAtMs, nowMs), 'credential');
    this.#record.succeed(this.#beganAtMs, nowMs);
  }

  #fail(effect: HealthEffect, error: unknown, nowMs: number): void {
    const { details } = failureOf(error);
    switch (effect) {
      case 'failure':
        this.#sample(true, nowMs);
        if (this.#logChange(this.#record.outage.fail(this.#beganAtMs, nowMs), 'outage') === 'opened') this.#record.window.clear();
        break;
      case 'rate-limited': {
        const retryAfterMs = typeof details.retryAfterMs === 'number' ? details.retryAfterMs : null;
        if (this.#record.cool(retryAfterMs, nowMs)) this.#logCooldown(nowMs);
        break;
      }
      case 'credential':
        this.#logChange(this.#credential.fail(this.#beganAtMs, nowMs), 'credential', details.status);
        break;
      case 'permission':
      case 'missing':
        this.#logChange(this.#record.refusal.fail(this.#beganAtMs, nowMs), 'model', details.status);
        break;
      case 'success':
      case 'none':
    }
  }

  /** In the window of outages what a breaker decides is left out: its trials would be an outage of their own. */
  #sample(isFailure: boolean, nowMs: number): void {
    this.#record.noteAttempt(isFailure, nowMs);
    if (this.#record.outage.stateAt(nowMs) === 'closed') this.#record.window.add(isFailure, nowMs);
  }

  #logChange(change: BreakerChange, what: keyof typeof CHANGES, status?: unknown): BreakerChange {
    if (change === null) return null;
    const { model, provider } = this.#record;
    const fields = { ...(what === 'credential' ? { provider } : { model, provider }), ...(typeof status === 'number' ? { status } : {}) };
    if (change === 'closed') this.#log.info(fields, CHANGES[what].closed);
    else if (what === 'outage') this.#log.warn(fields, CHANGES[what].opened);
    else this.#log.error(fields, CHANGES[what].opened);
    return change;
  }

  #logCooldown(nowMs: number): void {
    const { model, provider, cooldownUntilMs } = this.#record;
    this.#log.warn({ model, provider, for_ms: Math.round(cooldownUntilMs - nowMs) }, 'an endpoint has reached its rate limit: until then it is tried last');
  }
}

/** The lines of docs/operations.md, one per change. */
const CHANGES = {
  outage: { opened: 'an endpoint fails: it is tried last until it answers again', closed: 'an endpoint that failed answers again' },
  credential: {
    opened: "a provider refuses the operator's credential or account: its endpoints are tried last until it accepts them",
    closed: 'a provider accepts the credential again',
  },
  model: {
    opened: 'a provider does not have or permit a model: the endpoint is tried last until it answers',
    closed: 'a provider has a model again',
  },
} as const;
