import { setTimeout as delay } from 'node:timers/promises';
import { fetch } from 'undici';
import { type AgentEntry, AgentRows, RENEW_EVERY_MS } from '#shared/config/agent-rows.ts';
import { foreignPlatformOf } from '#shared/config/platform-address.ts';
import { type Environment, resolveKey, variableOf } from '#shared/config/secret-ref.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';

const REQUEST_MS = 8_000;
const RETRY_MS = 5_000;
/** More than any deployment has; a bound for the table. */
const MOST_AGENTS = 10_000;

/** Registers the agent once. */
export interface Registrar {
  register(agent: AgentEntry, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * What an agent registers. @param publicUrl `AGENT_PUBLIC_URL`; null: not set
 * @returns null: its manifest has no endpoint
 * @throws `config.invalid` for an endpoint without its address
 */
export function agentEntryOf({ id, name, version, endpoint }: Manifest, publicUrl: string | null): AgentEntry | null {
  if (!endpoint) return null;
  if (publicUrl === null)
    throw new SwitchyardError('config.invalid', 'endpoint: AGENT_PUBLIC_URL is not set, the address at which the agent gateway is reached');
  return { id, name, version, url: publicUrl };
}

interface RegistrarOptions {
  manifest: Manifest;
  /** Null: not known. */
  publicBaseUrl: string | null;
  environment: Environment;
  database: Queryable;
}

/** Of the manifest's platform: this deployment's table, or the router gateway of another one. */
export function registrarOf({ manifest: { agent_config: config }, publicBaseUrl, environment, database }: RegistrarOptions): Registrar {
  const address = foreignPlatformOf(config.platform.base_url, publicBaseUrl);
  return address === null ? ownRegistrar(new AgentRows(database)) : platformRegistrar(address, config, environment);
}

function ownRegistrar(agentRows: Pick<AgentRows, 'register'>): Registrar {
  return {
    async register(agent) {
      if ((await agentRows.register(agent, MOST_AGENTS)) === null) throw new SwitchyardError('request.conflict', `there are ${MOST_AGENTS} agents already`);
    },
    close: async () => {},
  };
}

/** At the router gateway of another deployment. @param address without a slash at its end @throws `config.invalid` naming the variable of a key that is not set */
function platformRegistrar(address: string, { platform }: Manifest['agent_config'], environment: Environment): Registrar {
  const keys = [keyOf('public_key', platform.public_key, environment), keyOf('secret_key', platform.secret_key, environment)];
  const headers = { authorization: `Basic ${Buffer.from(keys.join(':'), 'utf8').toString('base64')}`, 'content-type': 'application/json' };
  const dispatcher = openOutbound(environment).openDispatcher({ connectTimeoutMs: REQUEST_MS, maxConnections: 1 });
  return {
    async register(agent, signal) {
      const response = await fetch(`${address}/api/v1/platform/agents/${agent.id}`, {
        method: 'PUT',
        headers,
        body: JSON.stringify(agent),
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
        redirect: 'manual',
        dispatcher,
      });
      await response.body?.cancel();
      if (!response.ok) throw new SwitchyardError('service.unreachable', `the platform at ${address} answers ${response.status}`);
    },
    close: () => dispatcher.destroy(),
  };
}

function keyOf(name: string, reference: string, environment: Environment): string {
  const key = resolveKey(reference, environment);
  if (key === null) throw new SwitchyardError('config.invalid', `agent_config.platform.${name}: the environment variable ${variableOf(reference)} is not set`);
  return key;
}

interface RegistrationDeps {
  agent: AgentEntry;
  registrar: Registrar;
  log: Log;
  times?: { renewEveryMs: number; retryMs: number };
}

/** Registers the agent now and each minute; after a failure sooner. A platform that is away stops nothing: the registration lapses until it is back. */
export function startRegistration({ agent, registrar, log, times = { renewEveryMs: RENEW_EVERY_MS, retryMs: RETRY_MS } }: RegistrationDeps): {
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isRegistered: boolean | null = null;
  const register = async (): Promise<boolean> => {
    try {
      await registrar.register(agent, signal);
      if (isRegistered !== true) log.info({ agent_id: agent.id, url: agent.url }, 'the agent is registered with its platform');
      return true;
    } catch (error) {
      // Once per outage.
      if (isRegistered !== false && !signal.aborted)
        log.warn({ err: error, agent_id: agent.id }, 'the agent could not be registered with its platform; it is tried again');
      return false;
    }
  };
  const running = (async () => {
    while (!signal.aborted) {
      isRegistered = await register();
      await delay(isRegistered ? times.renewEveryMs : times.retryMs, undefined, { signal }).catch(() => {});
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
      await registrar.close();
    },
  };
}
