import { once } from 'node:events';
import { connect } from 'node:tls';
import { PROFILES } from '#services/router-worker/providers/openai-compatible/profiles.ts';
import { givenSettings } from '#services/standalone/given-settings.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { dataFolder, runningServer } from '../targets.ts';
import { type Check, type Finding, ok, problem } from './finding.ts';

const REQUEST_MS = 8_000;
const DAY_MS = 86_400_000;
const SOON_DAYS = 14;

interface Vendor {
  name: string;
  key: string;
  /** A setting, in place of `address`. */
  base: string;
  address: string | null;
  headers(key: string): Record<string, string>;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const vendors: readonly Vendor[] = [
  ...(['openai', 'groq', 'together', 'mistral', 'deepseek', 'xai'] as const).map((name) => ({
    name,
    key: `${name.toUpperCase()}_API_KEY`,
    base: `${name.toUpperCase()}_BASE_URL`,
    address: PROFILES[name].baseUrl,
    headers: bearer,
  })),
  {
    name: 'anthropic',
    key: 'ANTHROPIC_API_KEY',
    base: 'ANTHROPIC_BASE_URL',
    address: 'https://api.anthropic.com/v1',
    headers: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  },
  {
    name: 'gemini',
    key: 'GEMINI_API_KEY',
    base: 'GEMINI_BASE_URL',
    address: 'https://generativelanguage.googleapis.com/v1beta',
    headers: (key) => ({ 'x-goog-api-key': key }),
  },
];

/** What needs other machines: the servers themselves, providers, certificates. */
export function networkChecks(environment: Environment, clock: Clock): Check[] {
  return [
    { name: 'servers', fix: 'run `switchyard start`', run: () => checkServers(environment) },
    { name: 'providers', fix: 'compare the setting with the vendor’s account', run: () => checkProviders(environment) },
    { name: 'certificates', fix: 'install a certificate of this name', run: () => checkCertificates(environment, clock) },
  ];
}

async function checkServers(environment: Environment): Promise<Omit<Finding, 'check'>[]> {
  const running = await runningServer(dataFolder(environment));
  const isCluster = running?.isCluster === true;
  const [router, agent] = [environment['SWITCHYARD_ROUTER_URL'], environment['SWITCHYARD_AGENT_URL']];
  const servers = [
    router ? { urls: [router], isCluster: false } : { urls: running?.router ?? [], isCluster },
    agent ? { urls: [agent], isCluster: false } : { urls: running?.agent ?? [], isCluster },
  ].filter(({ urls }) => urls.length > 0);
  if (servers.length === 0) return [ok('no server runs here, and none is named')];
  const found = servers.map(async ({ urls, isCluster: isOfCluster }) => {
    const statuses = await Promise.all(urls.map(async (url) => ({ url, status: await statusOf(`${url}/health/ready`, {}) })));
    return serverFindings(statuses, isOfCluster);
  });
  return (await Promise.all(found)).flat();
}

/** Of the processes of one server. @param statuses null: no answer */
export function serverFindings(statuses: readonly { url: string; status: number | null }[], isOfCluster: boolean): Omit<Finding, 'check'>[] {
  const isServed = statuses.some(({ status }) => status === 200);
  return statuses.map(({ url, status }) => {
    if (status === 200) return ok(`${url} is ready`);
    const level = isServed ? 'warning' : 'failed';
    if (status !== null) return problem(level, `${url} is not ready (${status})`, 'look into the log of its process: it says what it waits for');
    const fix = isOfCluster
      ? 'its process may have ended: `switchyard cluster` reports that and starts none again, so restart the cluster'
      : 'look whether its process runs, and into its log';
    return problem(level, `${url} does not answer`, fix);
  });
}

async function checkProviders(given: Environment): Promise<Omit<Finding, 'check'>[]> {
  const environment = givenSettings(given);
  const asked = vendors.flatMap((vendor) => {
    const key = environment[vendor.key];
    return key ? [{ ...vendor, value: key }] : [];
  });
  if (asked.length === 0) {
    if (environment['OPENAI_BASE_URL'] || environment['ROUTER_CONFIG']) return [ok('no key of a vendor is set; providers are configured by other settings')];
    return [
      problem(
        'warning',
        'no key of a provider is set: a built-in script answers, not a model',
        'set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_BASE_URL',
      ),
    ];
  }
  return Promise.all(
    asked.map(async (vendor) => providerFinding(vendor, await statusOf(`${baseOf(vendor, environment)}/models`, vendor.headers(vendor.value)))),
  );
}

function baseOf({ base, address }: Vendor, environment: Environment): string {
  return (environment[base] || address || '').replace(/\/+$/, '');
}

export function providerFinding({ name, key }: Pick<Vendor, 'name' | 'key'>, status: number | null): Omit<Finding, 'check'> {
  if (status === null) return problem('failed', `${name} does not answer`, 'let this machine reach it: a firewall, a proxy (HTTPS_PROXY), or DNS');
  if (status === 401 || status === 403) return problem('failed', `${name} refuses the key (${status})`, `set ${key} to a valid key`);
  if (status >= 500 || status === 429) return problem('warning', `${name} answers ${status}`, 'wait, or configure another provider as a fallback');
  return ok(`${name} takes the key`);
}

/** Null: no answer. */
async function statusOf(url: string, headers: Record<string, string>): Promise<number | null> {
  try {
    const response = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(REQUEST_MS) });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}

async function checkCertificates(environment: Environment, clock: Clock): Promise<Omit<Finding, 'check'>[]> {
  const names = ['PUBLIC_BASE_URL', 'AGENT_PUBLIC_URL', 'SWITCHYARD_ROUTER_URL', 'SWITCHYARD_AGENT_URL'];
  const urls = names.flatMap((name) => (URL.canParse(environment[name] ?? '') ? [new URL(environment[name] ?? '')] : []));
  const hosts = new Map(urls.filter(({ protocol }) => protocol === 'https:').map((url) => [url.host, url]));
  if (hosts.size === 0) return [ok('no https address is set')];
  return Promise.all([...hosts.values()].map((url) => checkCertificate(url, clock)));
}

async function checkCertificate({ hostname, port, host }: URL, clock: Clock): Promise<Omit<Finding, 'check'>> {
  const socket = connect({ host: hostname, port: Number(port || 443), servername: hostname, rejectUnauthorized: false, timeout: REQUEST_MS });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(REQUEST_MS) });
    const endsAtMs = Date.parse(socket.getPeerCertificate().valid_to);
    const reason = socket.authorized
      ? null
      : socket.authorizationError instanceof Error
        ? socket.authorizationError.message
        : String(socket.authorizationError);
    return certificateFinding(host, { reason, days: Math.floor((endsAtMs - clock.nowMs()) / DAY_MS) });
  } catch (error) {
    return problem('failed', `${host}: no TLS connection (${Object(error).code ?? 'no answer'})`, 'start what serves it, such as the proxy in front');
  } finally {
    socket.destroy();
  }
}

/** @param of `reason`: why it is not trusted; null: it is. `days` until it expires */
export function certificateFinding(host: string, { reason, days }: { reason: string | null; days: number }): Omit<Finding, 'check'> {
  if (days < 0) return problem('failed', `${host}: the certificate expired ${-days} days ago`, 'renew it, and reload what serves it');
  if (reason !== null)
    return problem(
      'failed',
      `${host}: the certificate is not trusted (${reason})`,
      'install one of a known authority, or its authority here (NODE_EXTRA_CA_CERTS)',
    );
  if (days < SOON_DAYS) return problem('warning', `${host}: the certificate expires in ${days} days`, 'renew it, and look why it was not renewed by itself');
  return ok(`${host}: the certificate is valid for ${days} days`);
}
