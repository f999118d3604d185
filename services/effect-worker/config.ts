import { parseArgs } from 'node:util';
import { agentConfigOf } from '#shared/config/agent-config.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { processConfigOf } from '#shared/config/process-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { parseAllowHosts } from '#shared/http/outbound-guard.ts';
import { type EffectKind, effectKinds } from './effect-kinds.ts';

const KINDS = effectKinds.map(({ name }) => name);

const shape = settingsOf('effect-worker');

/** `--kinds` wins over EFFECT_KINDS. @throws `config.invalid` listing every bad variable */
export function parseConfig(environment: Environment, args: readonly string[]) {
  const data = readSettings(shape, environment);
  return {
    ...processConfigOf(data),
    ...agentConfigOf(data),
    nats: natsConfigOf('effect-worker', data),
    databaseUrl: data.DATABASE_URL,
    maxDeliveryAttempts: data.AUTONOMOUS_CALLBACK_MAX_RETRIES,
    outboundAllowHosts: parseAllowHosts(data.OUTBOUND_ALLOW_HOSTS),
    kinds: kindsOf(kindsArgument(args) ?? data.EFFECT_KINDS ?? KINDS.join(',')),
  } as const;
}

function kindsArgument(args: readonly string[]): string | undefined {
  try {
    return parseArgs({ args: [...args], options: { kinds: { type: 'string' } } }).values.kinds;
  } catch (cause) {
    throw new SwitchyardError('config.invalid', `effect-worker takes --kinds ${KINDS.join(',')} and nothing else`, { cause });
  }
}

function kindsOf(text: string): EffectKind[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const kinds = KINDS.filter((kind) => names.includes(kind));
  if (kinds.length === 0 || kinds.length < new Set(names).size) {
    throw new SwitchyardError('config.invalid', `the kinds of an effect worker (--kinds, EFFECT_KINDS) must be one or more of ${KINDS.join(', ')}`);
  }
  return kinds;
}
