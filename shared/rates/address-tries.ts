import { isIPv6 } from 'node:net';
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
 * Counts the tries of an address in the current minute, with those of other gateways. Addresses of IPv6 count by their first 64 bits: one client has all
 * that begin with them.
 * @returns rejects with `request.rate_limited` beyond the limit
 */
export function addressTries({ prefix, perMinute, cache, clock }: AddressTriesOptions): (address: string) => Promise<void> {
  const local = new LocalRates();
  const count = async (ip: string) => {
    const address = clientOf(ip);
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

/** Prefixes of 96 bits before an address of IPv4: mapped, and the well-known one of NAT64. */
const OF_IPV4 = new Set(['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0']);

/** An address of IPv4, also one within IPv6; or the network of 64 bits, written in full. */
function clientOf(ip: string): string {
  const address = ip.replace(/%.*$/, '');
  if (!isIPv6(address)) return ip;
  const { hostname } = new URL(`http://[${address}]`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const [first, last] = [head, tail ?? ''].map((groups) => (groups === '' ? [] : groups.split(':')));
  const groups = [...(first ?? []), ...Array<string>(8 - (first?.length ?? 0) - (last?.length ?? 0)).fill('0'), ...(last ?? [])];
  const [high, low] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return OF_IPV4.has(groups.slice(0, 6).join(':'))
    ? [(high ?? 0) >> 8, (high ?? 0) & 255, (low ?? 0) >> 8, (low ?? 0) & 255].join('.')
    : `${groups.slice(0, 4).join(':')}::/64`;
}
