import type { z } from 'zod';
import { agentConfigOf } from '#shared/config/agent-config.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { processConfigOf } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { type SettingsOf, settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { parseAllowHosts } from '#shared/http/outbound-guard.ts';

const shape = settingsOf('agent-gateway');

/**
 * The settings, read once; webhook secrets alone are read per request, by contract.
 * @throws `config.invalid` listing every invalid variable
 */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...gatewayConfigOf(data), nats: natsConfigOf('agent-gateway', data) } as const;
}

/** Without the broker, where each process has its own user. */
export function gatewayConfigOf(data: z.output<z.ZodObject<SettingsOf<'agent-gateway'>>>) {
  const processConfig = processConfigOf(data);
  return {
    ...processConfig,
    ...agentConfigOf(data),
    databaseUrl: data.DATABASE_URL,
    redisUrl: data.REDIS_URL,
    host: data.HOST,
    port: data.PORT,
    houseSecret: data.HOUSE_SECRET,
    keepsTraces: data.TRACES_LOCAL,
    /** Null: none is registered. */
    agentPublicUrl: data.AGENT_PUBLIC_URL ?? null,
    streaming: data.STREAMING,
    passesBaggage: processConfig.tracing.otel.passesBaggage,
    runs: {
      defaultTimeoutMs: data.AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS * 1_000,
      maxTimeoutMs: data.AUTONOMOUS_MAX_TIMEOUT_SECONDS * 1_000,
      requireCallbackAllowlist: data.REQUIRE_CALLBACK_ALLOWLIST,
    },
    maxTokens: data.ROUTER_MAX_TOKENS,
    providerOrder: data.LLM_PROVIDER_ORDER ?? [],
    outboundAllowHosts: parseAllowHosts(data.OUTBOUND_ALLOW_HOSTS),
  } as const;
}
