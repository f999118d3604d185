import { resolve } from 'node:path';
import type { z } from 'zod';
import { mailConfigOf } from '#shared/config/mail-settings.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { processConfigOf } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { type SettingsOf, settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { parseAllowHosts } from '#shared/http/outbound-guard.ts';

const shape = settingsOf('router-worker');

/** Environment of the router worker, read once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...workerConfigOf(data), nats: natsConfigOf('router-worker', data) } as const;
}

/** Without the broker, where each process has its own user. */
export function workerConfigOf(data: z.output<z.ZodObject<SettingsOf<'router-worker'>>>) {
  return {
    ...processConfigOf(data),
    databaseUrl: data.DATABASE_URL,
    /** Null: no cache. */
    redisUrl: data.REDIS_URL ?? null,
    routerConfigPath: resolve(data.ROUTER_CONFIG),
    /** Of the agent whose model calls may go to another platform; null: all calls are executed here. */
    manifestPath: data.MANIFEST === undefined ? null : resolve(data.MANIFEST),
    publicBaseUrl: data.PUBLIC_BASE_URL ?? null,
    outboundAllowHosts: parseAllowHosts(data.OUTBOUND_ALLOW_HOSTS),
    /** Null: mails wait. */
    mail: mailConfigOf(data),
    scriptedWordsPerSecond: data.SCRIPTED_WORDS_PER_SECOND,
  } as const;
}
