import ipaddr from 'ipaddr.js';

/** The allocated global unicast range. Outside it are old forms of IPv4 addresses, such as `::127.0.0.1`. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** Azure's metadata server, an ordinary unicast address. Those of other clouds are in refused ranges. */
const METADATA_ADDRESSES = new Set(['168.63.129.16']);

/** The middle of an interface id that embeds an IPv4 address (RFC 5214), in both its forms. */
const ISATAP_MARKS = new Set(['0:5efe', '200:5efe']);

/**
 * Whether an address is on the public internet: unicast, and not loopback, private, link-local, shared (100.64/10), reserved or a metadata
 * server. IPv6 addresses that embed an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) are not: their destination depends on the local
 * network. Nor is invalid text.
 *
 * @param address without brackets, in any spelling
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  if (parsed instanceof ipaddr.IPv4) return !METADATA_ADDRESSES.has(parsed.toString());
  if (parsed.zoneId !== undefined || !parsed.match(GLOBAL_IPV6)) return false;
  const [upper, lower] = parsed.parts.slice(4, 6).map((part) => part.toString(16));
  return !ISATAP_MARKS.has(`${upper}:${lower}`);
}
