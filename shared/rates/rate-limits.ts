import type { Clock } from '../clock.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { CallerKey } from '../keys/caller-key.ts';
import type { Cache } from '../storage/cache.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { within } from '../within.ts';
import { LocalRates } from './local-rates.ts';
import { RATE_COUNTER_MS, RATE_WINDOW_MS, rateCounterOf, rateWindowOf } from './rate-windows.ts';
import { type SlotHold, SlotLeases } from './slot-leases.ts';

/** For the cache to answer; then the process counts by itself. */
const ANSWER_MS = 250;
/** Of that time, each of which counts once: a command is sent at the end of a tick and answered in a later one, which say nothing of the cache when they take long. */
const ANSWER_PARTS = 5;
/** After a failure, before the cache is asked again. */
const AWAY_MS = 1_000;
/** Until a call may have ended and freed its slot. */
const SLOT_RETRY_MS = 1_000;

interface RateDeps {
  /** Null: each process counts by itself. */
  cache: Cache | null;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface RatedCall {
  /** Whether all processes count together: then the real usage corrects the tokens. */
  isShared: boolean;
  /** The call was not sent: its tokens do not count. */
  release(): void;
  /** The call has ended: its slot is free. Idempotent. */
  end(): void;
  /** Another process has the call, or none: its slot is held no longer, and free when its lease lapses. Idempotent. */
  leave(): void;
  /** The tokens that it has used count, in place of those at admission. Later windows count nothing of it. */
  correct(usedTokens: number): void;
}

interface SharedCall extends RatedCall {
  /** It was counted by this process instead: nothing of it counts. */
  withdraw(): void;
}

type Refused = 'requests' | 'tokens' | 'calls';

export function isRated({ requestsPerMinute, tokensPerMinute, callsAtOnce }: CallerKey['rates']): boolean {
  return requestsPerMinute !== null || tokensPerMinute !== null || callsAtOnce !== null;
}

/**
 * Limits of keys: requests and tokens per minute, calls at once, counted in the cache for all processes together. A call that is refused counts nothing. While the cache is away each process allows
 * its share by itself, so that no request fails for it.
 */
export class RateLimits {
  readonly #deps: RateDeps;
  readonly #local = new LocalRates();
  readonly #slots: SlotLeases | null;
  #awayUntilMs = Number.NEGATIVE_INFINITY;
  #isAway = false;
  /** Processes that limited a key in this window or the one before. */
  #processes = 1;
  #announcedWindow = -1;

  constructor(deps: RateDeps) {
    this.#deps = deps;
    this.#slots = deps.cache === null ? null : new SlotLeases(deps.cache);
  }

  /** @param tokens as estimated @throws `request.rate_limited`; `details.isFinal`: the call alone is over the limit, so that no time helps */
  async admit(key: CallerKey, { callId, tokens }: { callId: string; tokens: number }): Promise<RatedCall> {
    const { cache } = this.#deps;
    const { tokensPerMinute } = key.rates;
    if (tokensPerMinute !== null && tokens > tokensPerMinute) throw tooManyTokens(tokens, tokensPerMinute);
    const slots = this.#slots;
    if (cache === null || slots === null || performance.now() < this.#awayUntilMs) return this.#admitLocally(key, tokens);
    const { callsAtOnce } = key.rates;
    const hold = callsAtOnce === null ? null : slots.acquire(key.id, callId, callsAtOnce);
    try {
      const shared = this.#admitShared(key, tokens, cache, hold);
      const late = () => {
        shared.then((counted) => counted.withdraw()).catch(() => {});
        throw new SwitchyardError('service.no_answer', 'the cache did not answer in time');
      };
      const rated = await within(ANSWER_MS, shared, late, ANSWER_PARTS);
      if (this.#isAway) this.#deps.log.info({}, 'the limits of keys are counted for all processes together again');
      this.#isAway = false;
      return rated;
    } catch (error) {
      if (error instanceof SwitchyardError && error.code === 'request.rate_limited') throw error;
      if (!this.#isAway) this.#deps.log.error({ err: error }, 'the cache is away: each process limits keys by a share of its own');
      this.#isAway = true;
      this.#awayUntilMs = performance.now() + AWAY_MS;
      hold?.release();
      return this.#admitLocally(key, tokens);
    }
  }

  stop(): void {
    this.#slots?.stop();
  }

  /** It may go on after its time, and is withdrawn then; its hold has ended. */
  async #admitShared(key: CallerKey, tokens: number, cache: Cache, hold: SlotHold | null): Promise<SharedCall> {
    const { id: keyId, rates } = key;
    const { requestsPerMinute, tokensPerMinute } = rates;
    const nowMs = this.#deps.clock.nowMs();
    this.#announce(cache, nowMs);
    const requestCounter = rateCounterOf('requests', keyId, nowMs);
    const tokenCounter = rateCounterOf('tokens', keyId, nowMs);
    const [hasSlot, requests, allTokens] = await Promise.all([
      hold?.acquired ?? true,
      requestsPerMinute === null ? 0 : cache.increment(requestCounter, 1, RATE_COUNTER_MS),
      tokensPerMinute === null ? 0 : cache.increment(tokenCounter, tokens, RATE_COUNTER_MS),
    ]);
    const addTokens = (by: number) => {
      if (tokensPerMinute !== null && this.#isCurrent(nowMs)) cache.increment(tokenCounter, by, RATE_COUNTER_MS).catch(() => {});
    };
    const withdraw = () => {
      hold?.release();
      addTokens(-tokens);
      if (requestsPerMinute !== null) cache.increment(requestCounter, -1, RATE_COUNTER_MS).catch(() => {});
    };
    const refused = refusalOf(rates, { requests, tokens: allTokens, hasSlot });
    if (refused !== null) {
      withdraw();
      throw this.#refusal(refused, rates, nowMs, allTokens - tokens);
    }
    return {
      isShared: true,
      withdraw,
      release: () => addTokens(-tokens),
      end: () => hold?.release(),
      leave: () => hold?.leave(),
      correct: (usedTokens) => addTokens(usedTokens - tokens),
    };
  }

  #admitLocally({ id, rates }: CallerKey, tokens: number): RatedCall {
    const nowMs = this.#deps.clock.nowMs();
    this.#deps.metrics.add('ratesLocal', {});
    const share = (limit: number | null) => (limit === null ? null : Math.max(1, Math.floor(limit / this.#processes)));
    const own = { requestsPerMinute: share(rates.requestsPerMinute), tokensPerMinute: share(rates.tokensPerMinute), callsAtOnce: share(rates.callsAtOnce) };
    const sums = this.#local.add(id, nowMs, { requests: 1, tokens, calls: 1 });
    const tokensBefore = sums.tokens - tokens;
    const refused = refusalOf(own, { requests: sums.requests, tokens: sums.tokens, hasSlot: own.callsAtOnce === null || sums.calls <= own.callsAtOnce });
    const add = (by: { requests: number; tokens: number }) => {
      if (this.#isCurrent(nowMs)) this.#local.add(id, nowMs, { ...by, calls: 0 });
    };
    let isOpen = true;
    const end = () => {
      if (!isOpen) return;
      isOpen = false;
      this.#local.add(id, this.#deps.clock.nowMs(), { requests: 0, tokens: 0, calls: -1 });
    };
    if (refused === null) {
      const correct = (usedTokens: number) => add({ requests: 0, tokens: usedTokens - tokens });
      return { isShared: false, release: () => add({ requests: 0, tokens: -tokens }), end, leave: end, correct };
    }
    end();
    add({ requests: -1, tokens: -tokens });
    throw this.#refusal(refused, own, nowMs, tokensBefore);
  }

  /** Counts the processes, once per window: the share of each when the cache is away. */
  #announce(cache: Cache, nowMs: number): void {
    const window = rateWindowOf(nowMs);
    if (window === this.#announcedWindow) return;
    this.#announcedWindow = window;
    Promise.all([cache.increment(`rate:gateways:${window}`, 1, RATE_COUNTER_MS), cache.get(`rate:gateways:${window - 1}`)]).then(
      ([present, former]) => {
        this.#processes = Math.max(1, present, Number(former ?? 0));
      },
      () => {},
    );
  }

  /** Whether the window of the time is still the current one. */
  #isCurrent(atMs: number): boolean {
    return rateWindowOf(atMs) === rateWindowOf(this.#deps.clock.nowMs());
  }

  #refusal(refused: Refused, rates: CallerKey['rates'], nowMs: number, usedTokens: number): SwitchyardError {
    const windowEndMs = (rateWindowOf(nowMs) + 1) * RATE_WINDOW_MS;
    const resetAtMs = refused === 'calls' ? nowMs + SLOT_RETRY_MS : windowEndMs;
    const limit = { requests: rates.requestsPerMinute, tokens: rates.tokensPerMinute, calls: rates.callsAtOnce }[refused] ?? 0;
    const remaining = refused === 'tokens' ? Math.max(0, limit - usedTokens) : 0;
    const what = { requests: 'requests per minute', tokens: 'tokens per minute', calls: 'calls at once' }[refused];
    return new SwitchyardError('request.rate_limited', `The API key is limited to ${limit} ${what}`, {
      details: { retryAfterMs: Math.max(1, resetAtMs - nowMs), limit: refused, rateLimit: { limit, remaining, resetAtMs } },
    });
  }
}

function tooManyTokens(tokens: number, limit: number): SwitchyardError {
  const message = `The request counts ${tokens} tokens, as its prompt is estimated and with the most that it allows for its completion, and the API key is limited to ${limit} tokens per minute. Lower max_tokens, or shorten the prompt`;
  return new SwitchyardError('request.rate_limited', message, { details: { isFinal: true, limit: 'tokens' satisfies Refused } });
}

/** Null: within all limits. */
function refusalOf({ requestsPerMinute, tokensPerMinute }: CallerKey['rates'], sums: { requests: number; tokens: number; hasSlot: boolean }): Refused | null {
  if (!sums.hasSlot) return 'calls';
  if (requestsPerMinute !== null && sums.requests > requestsPerMinute) return 'requests';
  return tokensPerMinute !== null && sums.tokens > tokensPerMinute ? 'tokens' : null;
}
