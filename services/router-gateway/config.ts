import { resolve } from 'node:path';
import type { z } from 'zod';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { processConfigOf } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { type SettingsOf, settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';

const shape = settingsOf('router-gateway');

/** Reads the environment once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...gatewayConfigOf(data), nats: natsConfigOf('router-gateway', data) } as const;
}

/** Without the broker, where each process has its own user. */
export function gatewayConfigOf(data: z.output<z.ZodObject<SettingsOf<'router-gateway'>>>) {
  const { PLATFORM_PUBLIC_KEY: publicKey, PLATFORM_SECRET_KEY: secretKey } = data;
  return {
    ...processConfigOf(data),
    /** Null: only the keys of the file are known. */
    databaseUrl: data.DATABASE_URL ?? null,
    /** Null: nothing is counted for all gateways together. */
    redisUrl: data.REDIS_URL ?? null,
    host: data.HOST,
    port: data.PORT,
    houseSecret: data.HOUSE_SECRET,
    keepsTraces: data.TRACES_LOCAL,
    platformKeys: publicKey !== undefined && secretKey !== undefined ? { publicKey, secretKey } : null,
    routerConfigPath: resolve(data.ROUTER_CONFIG),
  } as const;
}
