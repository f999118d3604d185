import { isIP } from 'node:net';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { NameLookup } from './name-lookup.ts';
import { isPublicAddress } from './public-address.ts';

/** Every attempt of a delivery carries its URL. */
const MAX_URL_LENGTH = 2_048;
const MAX_NAME_LENGTH = 253;

/** Allowed schemes with their default ports. */
const DEFAULT_PORTS = new Map([
  ['https:', '443'],
  ['http:', '80'],
]);

/** The URL parser silently drops or rewrites these, so that another program could read another host. */
const AMBIGUOUS = /[\s\\\p{Cc}]/u;
const ORIGIN_AND_REST = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)/i;
const NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
/** A host alone. The URL parser would take a port, path or user off silently. */
const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@\\[\]%]+)$/i;
const HOST_AND_PORT = /^(.+):(\d{1,5})$/;

export interface OutboundRules {
  /** Exact `host:port` pairs from OUTBOUND_ALLOW_HOSTS, by `parseAllowHosts`. Only they may use http or have private addresses. */
  allowHosts: ReadonlySet<string>;
}

/** `details.reason` of `outbound.refused`, with its message. No message repeats more of the URL than its host and port. */
const REFUSALS = {
  url_invalid: 'the URL is not an absolute URL with a host',
  url_too_long: `the URL has more than ${MAX_URL_LENGTH} characters`,
  scheme_not_allowed: 'the URL is not an https URL',
  userinfo: 'the URL holds a user name or a password',
  host_invalid: 'the host of the URL is not a valid host name',
  host_not_allowed: 'the host of the URL is not on the list of allowed hosts',
  localhost: 'the host of the URL is this machine itself',
  ip_literal: 'the host of the URL is an IP address instead of a name',
  address_not_public: 'the host of the URL has an address that is not in the public internet',
} as const;

/**
 * @param text comma-separated `host:port` pairs, IPv6 addresses in brackets; undefined or empty: none
 * @throws SwitchyardError `config.invalid`, naming the entry
 */
export function parseAllowHosts(text: string | undefined): ReadonlySet<string> {
  const entries = (text ?? '').split(',').map((entry) => entry.trim());
  return new Set(entries.filter((entry) => entry !== '').map(parseAllowHost));
}

function parseAllowHost(entry: string): string {
  const [, hostText, portText] = HOST_AND_PORT.exec(entry) ?? [];
  const host = hostText === undefined ? null : canonicalHost(hostText);
  const port = Number(portText);
  if (host === null || port < 1 || port > 65_535) {
    throw new SwitchyardError('config.invalid', `OUTBOUND_ALLOW_HOSTS: '${entry}' must be host:port, with an IPv6 address in brackets and no wildcards`);
  }
  return `${host}:${port}`;
}

/**
 * The checks of a URL that need no DNS lookup; `reachableAddresses` does the rest at every attempt.
 *
 * @param hostAllowlist hosts, or `.host` for a host and its subdomains; null and empty: any. An IP address passes only as an entry, here
 * or in OUTBOUND_ALLOW_HOSTS
 * @returns the normalised URL: host in lower case and `xn--` form without a trailing dot, no fragment
 * @throws SwitchyardError `outbound.refused` with `details.reason`
 */
export function checkOutboundUrl(url: string, rules: OutboundRules, hostAllowlist: readonly string[] | null): URL {
  const parsed = parseStrictly(url);
  const host = parsed.hostname;
  const exempt = isExempt(parsed, rules);
  if (parsed.protocol !== 'https:' && !exempt) throw refusalOf(parsed, 'scheme_not_allowed');
  const limited = hostAllowlist !== null && hostAllowlist.length > 0;
  if (limited && !hostAllowlist.some((entry) => covers(entry, host))) throw refusal('host_not_allowed');
  if (exempt) return parsed;
  if (host === 'localhost' || host.endsWith('.localhost')) throw refusalOf(parsed, 'localhost');
  if (isLiteral(host)) {
    if (!limited) throw refusalOf(parsed, 'ip_literal');
    if (!isPublicAddress(bareAddress(host))) throw refusalOf(parsed, 'address_not_public');
  }
  return parsed;
}

/**
 * The only addresses that a connection for this URL may use; resolving the name again would allow DNS rebinding. One non-public address
 * refuses them all: an honest name has no such mixture, and with the public ones admitted, retries could reach the private one.
 *
 * @param url from `checkOutboundUrl`
 * @throws SwitchyardError `outbound.refused`, or the error of `lookup`
 */
export async function reachableAddresses(url: URL, rules: OutboundRules, lookup: NameLookup): Promise<readonly string[]> {
  const exempt = isExempt(url, rules);
  // The last check of literals: sockets call no lookup for them.
  const addresses = isLiteral(url.hostname) ? [bareAddress(url.hostname)] : await lookup(url.hostname, exempt ? 'system' : 'dns');
  if (!exempt && !addresses.every(isPublicAddress)) throw refusalOf(url, 'address_not_public');
  return addresses;
}

/** An address without a URL's brackets, for sockets. */
export function bareAddress(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

function parseStrictly(url: string): URL {
  if (url.length > MAX_URL_LENGTH) throw refusal('url_too_long');
  const [, authority] = ORIGIN_AND_REST.exec(url) ?? [];
  if (AMBIGUOUS.test(url) || authority === undefined || !URL.canParse(url)) throw refusal('url_invalid');
  const parsed = new URL(url);
  if (!DEFAULT_PORTS.has(parsed.protocol)) throw refusal('scheme_not_allowed');
  if (authority.includes('@')) throw refusal('userinfo');
  const host = canonicalHost(parsed.hostname);
  if (host === null || parsed.port === '0') throw refusal('host_invalid');
  parsed.hostname = host;
  parsed.hash = '';
  // Escaping may have lengthened it.
  if (parsed.href.length > MAX_URL_LENGTH) throw refusal('url_too_long');
  return parsed;
}

/** Lower case, `xn--` form, without a trailing dot; an address in its shortest spelling. Null: not a host. */
function canonicalHost(text: string): string | null {
  if (!HOST.test(text) || !URL.canParse(`https://${text}`)) return null;
  const host = new URL(`https://${text}`).hostname.replace(/\.$/, '');
  if (isLiteral(host)) return host;
  return NAME.test(host) && host.length <= MAX_NAME_LENGTH ? host : null;
}

function covers(entry: string, host: string): boolean {
  if (!entry.startsWith('.')) return canonicalHost(entry) === host;
  const apex = canonicalHost(entry.slice(1));
  return apex !== null && !isLiteral(apex) && (host === apex || host.endsWith(`.${apex}`));
}

function isExempt(url: URL, { allowHosts }: OutboundRules): boolean {
  return allowHosts.has(hostAndPort(url));
}

function hostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || DEFAULT_PORTS.get(protocol)}`;
}

function isLiteral(host: string): boolean {
  return isIP(bareAddress(host)) !== 0;
}

function refusal(reason: keyof typeof REFUSALS, remedy = ''): SwitchyardError {
  return new SwitchyardError('outbound.refused', `${REFUSALS[reason]}${remedy}`, { details: { reason } });
}

/** A refusal that an entry in OUTBOUND_ALLOW_HOSTS lifts. @param url parsed: its host and port hold no credential and no character to quote */
function refusalOf(url: URL, reason: 'scheme_not_allowed' | 'localhost' | 'ip_literal' | 'address_not_public'): SwitchyardError {
  return refusal(reason, `; the setting OUTBOUND_ALLOW_HOSTS=${hostAndPort(url)} (exact host:port pairs, separated by commas) makes an exception of it`);
}
