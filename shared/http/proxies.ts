import { BlockList, isIP } from 'node:net';
import type { Environment } from '../config/secret-ref.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { bareAddress } from './outbound-guard.ts';

/** The proxy for a URL of the configuration; null: a direct connection. */
export type ProxyOf = (url: URL) => URL | null;

const SCHEMES = new Set(['http:', 'https:', 'socks5:']);
const DEFAULT_PORTS = new Map([
  ['https:', '443'],
  ['http:', '80'],
]);
const ENTRY_WITH_PORT = /^(.+):(\d+)$/;
const SUBNET = /^([0-9a-f.:]+)\/(\d{1,3})$/i;

/**
 * Reads HTTP_PROXY, HTTPS_PROXY (default: HTTP_PROXY) and NO_PROXY, or their lower-case forms. Servers on this machine are never reached
 * through a proxy.
 * @throws `config.invalid` naming a variable that is not the URL of a proxy
 */
export function readProxies(environment: Environment): ProxyOf {
  const http = proxyIn(environment, 'HTTP_PROXY');
  const https = proxyIn(environment, 'HTTPS_PROXY') ?? http;
  const isExempt = exemptions(variable(environment, 'NO_PROXY'));
  return (url) => {
    const proxy = url.protocol === 'https:' ? https : http;
    return proxy === null || isThisMachine(url) || isExempt(url) ? null : proxy;
  };
}

function variable(environment: Environment, name: string): string {
  return environment[name] ?? environment[name.toLowerCase()] ?? '';
}

/** The message repeats no value: it may hold a password. */
function proxyIn(environment: Environment, name: string): URL | null {
  const text = variable(environment, name).trim();
  if (text === '') return null;
  const url = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(url) || !SCHEMES.has(new URL(url).protocol)) throw new SwitchyardError('config.invalid', `${name} is not the URL of a proxy`);
  return new URL(url);
}

function isThisMachine({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** Entries are `*`, hosts with their subdomains, also with a port, and subnets for addresses. */
function exemptions(text: string): (url: URL) => boolean {
  const entries = text
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== '');
  if (entries.includes('*')) return () => true;
  const subnets = new BlockList();
  for (const entry of entries) addSubnet(subnets, entry);
  const hosts = entries.map((entry) => {
    const [, host = entry, port = null] = ENTRY_WITH_PORT.exec(entry) ?? [];
    return { host: host.replace(/^\*?\./, ''), port };
  });
  return ({ hostname, port, protocol }) => {
    const actualPort = port || DEFAULT_PORTS.get(protocol);
    if (hosts.some((entry) => (entry.port === null || entry.port === actualPort) && (hostname === entry.host || hostname.endsWith(`.${entry.host}`))))
      return true;
    const address = bareAddress(hostname);
    const family = isIP(address);
    return family !== 0 && subnets.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };
}

/** An invalid entry is ignored, as other programs do. */
function addSubnet(subnets: BlockList, entry: string): void {
  const [, address = '', prefix] = SUBNET.exec(entry) ?? [];
  const family = isIP(address);
  if (family === 0 || Number(prefix) > (family === 6 ? 128 : 32)) return;
  subnets.addSubnet(address, Number(prefix), family === 6 ? 'ipv6' : 'ipv4');
}
