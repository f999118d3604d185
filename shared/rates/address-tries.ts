import type { Clock } from '../clock.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Cache } from '../storage/cache.ts';
import { LocalRates } from './local-rates.ts';
import { RATE_COUNTER_MS, RATE_WINDOW_MS, rateWindowOf } from './rate-windows.ts';

interface AddressTriesOptions {
  /** Begins the keys of the cache; of what is tried. */
  prefix: string;
  perMinute: number;
  /** Null, or while it is unreachable: each process counts by itself. */
  cache: Pick<Cache, 'increment'> | null;
  clock: Clock;
}

/**
 * Counts the tries of an address in the current minute, with those of other gateways.
 * @returns rejects with `request.rate_limited` beyond the limit
 */
export function addressTries({ prefix, perMinute, cache, clock }: AddressTriesOptions): (address: string) => Promise<void> {
  const local = new LocalRates();
  const count = async (address: string) => {
    const nowMs = clock.nowMs();
    const own = local.add(address, nowMs, { requests: 1, tokens: 0, calls: 0 }).requests;
    if (cache === null) return own;
    try {
      return await cache.increment(`${prefix}:${rateWindowOf(nowMs)}:${address}`, 1, RATE_COUNTER_MS);
    } catch {
      return own;
    }
  };
  return async (address) => {
    if ((await count(address)) <= perMinute) return;
    const retryAfterMs = RATE_WINDOW_MS - (clock.nowMs() % RATE_WINDOW_MS);
    throw new SwitchyardError('request.rate_limited', 'Too many tries from this address', { details: { retryAfterMs } });
  };
}
