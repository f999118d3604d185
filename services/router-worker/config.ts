import { resolve } from 'node:path';
import { natsConfigOf, natsSettings } from '#shared/config/nats-settings.ts';
import { processConfigOf, processSettings } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { readSettings, settings } from '#shared/config/settings.ts';

const shape = {
  ...processSettings,
  ...natsSettings,
  DATABASE_URL: settings.DATABASE_URL,
  ROUTER_CONFIG: settings.ROUTER_CONFIG,
  SCRIPTED_WORDS_PER_SECOND: settings.SCRIPTED_WORDS_PER_SECOND,
};

/** Environment of the router worker, read once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return {
    ...processConfigOf(data),
    nats: natsConfigOf('router-worker', data),
    databaseUrl: data.DATABASE_URL,
    routerConfigPath: resolve(data.ROUTER_CONFIG),
    scriptedWordsPerSecond: data.SCRIPTED_WORDS_PER_SECOND,
  } as const;
}
