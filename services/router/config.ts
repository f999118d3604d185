import { gatewayConfigOf } from '#services/router-gateway/config.ts';
import { workerConfigOf } from '#services/router-worker/config.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';

/** Of both roles; the worker cannot start without a database. */
const shape = { ...settingsOf('router-gateway'), ...settingsOf('router-worker') };

/** Environment of the router, read once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...gatewayConfigOf(data), ...workerConfigOf(data), nats: natsConfigOf('router', data) } as const;
}
