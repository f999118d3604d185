import { hostConfigOf } from '#services/actor-host/config.ts';
import { gatewayConfigOf } from '#services/agent-gateway/config.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';

const shape = { ...settingsOf('agent-gateway'), ...settingsOf('actor-host') };

/** Environment of both roles, read once. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, environment);
  return { ...gatewayConfigOf(data), ...hostConfigOf(data), nats: natsConfigOf('agent', data) } as const;
}
