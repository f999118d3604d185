import type { z } from 'zod';
import { agentConfigOf } from '#shared/config/agent-config.ts';
import { eventWebhooksOf } from '#shared/config/event-webhook-settings.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { processConfigOf } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { type SettingsOf, settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { sweepOf } from '#shared/config/sweep-settings.ts';

const shape = settingsOf('actor-host');

/** Reads the environment once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...hostConfigOf(data), nats: natsConfigOf('actor-host', data) } as const;
}

/** Without the broker, where each process has its own user. */
export function hostConfigOf(data: z.output<z.ZodObject<SettingsOf<'actor-host'>>>) {
  return {
    ...processConfigOf(data),
    ...agentConfigOf(data),
    databaseUrl: data.DATABASE_URL,
    houseSecret: data.HOUSE_SECRET,
    /** Undefined: the value stored in the database applies. */
    tagsRequiredFromMs: data.COMMAND_TAGS_REQUIRED_FROM?.getTime(),
    streaming: data.STREAMING,
    coalesceMs: data.COALESCE_MS,
    turnTimeoutMs: data.TURN_TIMEOUT_SECONDS * 1_000,
    evaluationParallelism: data.EVAL_NODE_PARALLELISM,
    maxTokens: data.ROUTER_MAX_TOKENS,
    providerOrder: data.LLM_PROVIDER_ORDER ?? [],
    maxDeliveryAttempts: data.AUTONOMOUS_CALLBACK_MAX_RETRIES,
    eventWebhooks: eventWebhooksOf(data),
    sweep: sweepOf(data),
  } as const;
}
