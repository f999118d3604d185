import type { RouterConfig } from '../config/router-config.ts';
import { type Environment, resolveKey, variableOf } from '../config/secret-ref.ts';
import { nanoOfUsd } from '../credit/nano-usd.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type CallerKey, hashOfSecret } from './caller-key.ts';
import { hashInReference } from './key-reference.ts';

/** Possible in a header. */
const SECRET = /^[\x21-\x7e]+$/;

type ConfiguredKey = RouterConfig['keys'][number];

/**
 * The keys of the router's file, by their hash. A disabled key needs no secret; white space around a secret, as in files, is trimmed.
 * @throws `config.invalid` naming a secret that is missing, repeated, or not possible in a header
 */
export function fileKeys({ keys }: Pick<RouterConfig, 'keys'>, environment: Environment): ReadonlyMap<string, CallerKey> {
  const table = new Map<string, CallerKey>();
  for (const configured of keys) {
    const hash = hashOf(configured, environment);
    if (hash === null) continue;
    const other = table.get(hash);
    if (other !== undefined) throw new SwitchyardError('config.invalid', `the router's keys '${other.id}' and '${configured.id}' have the same secret`);
    table.set(hash, callerKey(configured, hash));
  }
  return table;
}

/** Those that call models: all that a worker needs. @throws as `fileKeys` */
export function modelKeys({ keys }: Pick<RouterConfig, 'keys'>, environment: Environment): ReadonlyMap<string, CallerKey> {
  return fileKeys({ keys: keys.filter(({ management }) => !management) }, environment);
}

/** Null: a disabled key without a secret, which identifies no caller. */
function hashOf({ id, key, disabled }: ConfiguredKey, environment: Environment): string | null {
  const given = hashInReference(key);
  if (given !== null) return given;
  const secret = resolveKey(key, environment);
  if (secret === null && disabled) return null;
  if (secret === null) throw new SwitchyardError('config.invalid', `${variableOf(key)} is not set: the router's key '${id}' needs it`);
  if (!SECRET.test(secret)) {
    throw new SwitchyardError(
      'config.invalid',
      `${variableOf(key)}: the secret of the router's key '${id}' may contain only printable ASCII characters, and no spaces`,
    );
  }
  return hashOfSecret(secret);
}

function callerKey({ id, name = id, disabled, management, limit, limit_reset: limitReset, limits }: ConfiguredKey, hash: string): CallerKey {
  return {
    id,
    hash,
    label: name,
    isManagement: management,
    disabled,
    expiresAtMs: null,
    isOauth: false,
    limitNano: limit === undefined ? null : nanoOfUsd(Number(limit)),
    limitReset: limitReset ?? null,
    rates: {
      requestsPerMinute: limits.requests_per_minute ?? null,
      tokensPerMinute: limits.tokens_per_minute ?? null,
      callsAtOnce: limits.calls_at_once ?? null,
    },
  };
}
