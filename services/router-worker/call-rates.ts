import type { RouterCall } from '#bus/messages/router.ts';
import { pauseFor } from '#bus/pause.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import type { RatedCall, RateLimits } from '#shared/rates/rate-limits.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Each has a slot of the worker, so calls of other agents must find some. Beyond it a call is refused at once. */
const MAX_WAITING = 128;
/** Other calls end, and their tokens are corrected, before the limiter's time is over. */
const LONGEST_WAIT_MS = 5_000;
/** Calls that wait for one window do not all come at its first millisecond. */
const JITTER_MS = 250;

interface CallRatesDeps {
  rates: Pick<RateLimits, 'admit'>;
  /** Of deadlines of actors' calls. */
  clock: Clock;
  /** For tests. */
  maxWaiting?: number;
  longestWaitMs?: number;
}

/** Limits of keys per minute and at once, for calls of actors, which no gateway has admitted. A call over its limit waits under its lease. */
export class CallRates {
  readonly #deps: Required<CallRatesDeps>;
  #waiting = 0;

  constructor(deps: CallRatesDeps) {
    this.#deps = { maxWaiting: MAX_WAITING, longestWaitMs: LONGEST_WAIT_MS, ...deps };
  }

  /**
   * Waits while the key has no room, the call's deadline allows it, and not too many others wait.
   * @param log with the ids of the call
   * @throws `request.rate_limited`, or the signal's reason
   */
  async admit({ callId, deadlineAtMs }: RouterCall, key: CallerKey, tokens: number, signal: AbortSignal, log: Log): Promise<RatedCall> {
    const { rates, clock, maxWaiting, longestWaitMs } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      try {
        return await rates.admit(key, { callId, tokens });
      } catch (error) {
        const waitMs = Math.min(retryAfterOf(error), longestWaitMs) + Math.random() * JITTER_MS;
        if (isFinal(error) || this.#waiting >= maxWaiting || deadlineAtMs - clock.nowMs() <= waitMs) throw error;
        if (tries === 1) log.info({ key_id: key.id, key_label: key.label }, 'a call of an agent waits, since its key is over its limits');
        await this.#wait(waitMs, signal);
        signal.throwIfAborted();
      }
    }
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#waiting += 1;
    try {
      await pauseFor(ms, signal);
    } finally {
      this.#waiting -= 1;
    }
  }
}

const isFinal = (error: unknown) => error instanceof SwitchyardError && error.details['isFinal'] === true;

/** @throws the error, when it is not the limiter's */
function retryAfterOf(error: unknown): number {
  if (!(error instanceof SwitchyardError) || error.code !== 'request.rate_limited') throw error;
  const { retryAfterMs } = error.details;
  return typeof retryAfterMs === 'number' ? retryAfterMs : 0;
}
