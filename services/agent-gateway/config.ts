import { agentConfigOf, agentSettings } from '#shared/config/agent-config.ts';
import { natsConfigOf, natsSettings } from '#shared/config/nats-settings.ts';
import { processConfigOf, processSettings } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { publicPort, readSettings, settings } from '#shared/config/settings.ts';
import { parseAllowHosts } from '#shared/http/outbound-guard.ts';

const shape = {
  ...processSettings,
  ...natsSettings,
  ...agentSettings,
  DATABASE_URL: settings.DATABASE_URL,
  REDIS_URL: settings.REDIS_URL,
  HOST: settings.HOST,
  PORT: publicPort(8_080),
  HOUSE_SECRET: settings.HOUSE_SECRET,
  STREAMING: settings.STREAMING,
  AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS: settings.AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS,
  AUTONOMOUS_MAX_TIMEOUT_SECONDS: settings.AUTONOMOUS_MAX_TIMEOUT_SECONDS,
  REQUIRE_CALLBACK_ALLOWLIST: settings.REQUIRE_CALLBACK_ALLOWLIST,
  OUTBOUND_ALLOW_HOSTS: settings.OUTBOUND_ALLOW_HOSTS,
};

/**
 * The settings, read once; webhook secrets alone are read per request, by contract.
 * @throws `config.invalid` listing every invalid variable
 */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return {
    ...processConfigOf(data),
    ...agentConfigOf(data),
    nats: natsConfigOf('agent-gateway', data),
    databaseUrl: data.DATABASE_URL,
    redisUrl: data.REDIS_URL,
    host: data.HOST,
    port: data.PORT,
    houseSecret: data.HOUSE_SECRET,
    streaming: data.STREAMING,
    runs: {
      defaultTimeoutMs: data.AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS * 1_000,
      maxTimeoutMs: data.AUTONOMOUS_MAX_TIMEOUT_SECONDS * 1_000,
      requireCallbackAllowlist: data.REQUIRE_CALLBACK_ALLOWLIST,
    },
    outboundAllowHosts: parseAllowHosts(data.OUTBOUND_ALLOW_HOSTS),
  } as const;
}
