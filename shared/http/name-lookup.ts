import { lookup, Resolver } from 'node:dns/promises';

/** Per try and name server: an unanswered name must not use up the whole attempt. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/**
 * Resolves a name to its addresses, in the order of trying.
 *
 * `dns` asks the name servers only: names from callers must not reach this machine's hosts file or search domains. It also avoids Node's
 * thread pool, which one slow name server could exhaust. `system` resolves as other programs here do, for names in a private network.
 *
 * @throws the resolver's error when there is no address
 */
export type NameLookup = (name: string, source: 'dns' | 'system') => Promise<readonly string[]>;

interface NameLookupOptions {
  /** Name servers as `address` or `address:port`; absent: the system's. */
  servers?: readonly string[];
  timeoutMs?: number;
}

export function nameLookup({ servers, timeoutMs = DNS_TIMEOUT_MS }: NameLookupOptions = {}): NameLookup {
  return async (name, source) => {
    if (source === 'system') return (await lookup(name, { all: true })).map(({ address }) => address);
    // A new resolver reads the machine's settings, so that changed name servers need no restart.
    const resolver = new Resolver({ timeout: timeoutMs, tries: DNS_TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason;
    return addresses;
  };
}
