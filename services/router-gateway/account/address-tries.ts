import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { LocalRates } from '#shared/rates/local-rates.ts';
import { rateWindowOf } from '#shared/rates/rate-windows.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { accountLimits } from './limits.ts';

/**
 * Counts the tries of an address in the current minute, with those of other gateways while the cache is reachable.
 * @param kind of what is tried
 * @returns rejects with `request.rate_limited` beyond the limit
 */
export function addressTries(kind: 'code' | 'approval', cache: Cache | null, clock: Clock): (address: string) => Promise<void> {
  const local = new LocalRates();
  const count = async (address: string) => {
    const nowMs = clock.nowMs();
    const own = local.add(address, nowMs, { requests: 1, tokens: 0, calls: 0 }).requests;
    if (cache === null) return own;
    try {
      return await cache.increment(`oauth:${kind}:${rateWindowOf(nowMs)}:${address}`, 1, 2 * accountLimits.triesWindowMs);
    } catch {
      return own;
    }
  };
  return async (address) => {
    if ((await count(address)) <= accountLimits.triesPerMinute) return;
    const details = { retryAfterMs: accountLimits.triesWindowMs };
    throw new SwitchyardError('request.rate_limited', 'Too many tries from this address', { details });
  };
}
