import { resolve } from 'node:path';
import { z } from 'zod';
import { natsConfigOf, natsSettings } from '#shared/config/nats-settings.ts';
import { processConfigOf, processSettings } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { publicPort, readSettings, settings } from '#shared/config/settings.ts';

const shape = {
  ...processSettings,
  ...natsSettings,
  HOST: settings.HOST,
  PORT: publicPort(3_000),
  HOUSE_SECRET: settings.HOUSE_SECRET,
  ROUTER_CONFIG: settings.ROUTER_CONFIG,
  PLATFORM_PUBLIC_KEY: z.string().optional(),
  PLATFORM_SECRET_KEY: z.string().optional(),
};

/** Reads the environment once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  const { PLATFORM_PUBLIC_KEY: publicKey, PLATFORM_SECRET_KEY: secretKey } = data;
  return {
    ...processConfigOf(data),
    nats: natsConfigOf('router-gateway', data),
    host: data.HOST,
    port: data.PORT,
    houseSecret: data.HOUSE_SECRET,
    platformKeys: publicKey !== undefined && secretKey !== undefined ? { publicKey, secretKey } : null,
    routerConfigPath: resolve(data.ROUTER_CONFIG),
  } as const;
}
