import { lookup, Resolver } from 'node:dns/promises';

/** One try at one name server, and the tries at each: a name that nobody answers for costs seconds, not the whole attempt. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/**
 * The addresses of a name, in the order in which they should be tried.
 *
 * `dns` asks the name servers and nobody else: the hosts file and the search domains of this machine are not for names that callers
 * give. It also holds none of Node's few threads, which one slow name server could otherwise keep from everything else.
 * `system` is what every other program on this machine sees, as names in a private network need it.
 *
 * @throws the resolver's error when there is no address
 */
export type NameLookup = (name: string, source: 'dns' | 'system') => Promise<readonly string[]>;

interface NameLookupOptions {
  /** Name servers as `address` or `address:port`; absent: those of the system. */
  servers?: readonly string[];
  timeoutMs?: number;
}

export function nameLookup({ servers, timeoutMs = DNS_TIMEOUT_MS }: NameLookupOptions = {}): NameLookup {
  return async (name, source) => {
    if (source === 'system') return (await lookup(name, { all: true })).map(({ address }) => address);
    // A resolver per name reads the machine's settings anew, so a change of name servers needs no restart.
    const resolver = new Resolver({ timeout: timeoutMs, tries: DNS_TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason;
    return addresses;
  };
}
