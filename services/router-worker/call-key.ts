import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type CallerKey, type KeyDirectory, refusalOf } from '#shared/keys/caller-key.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';

interface Deps {
  keys: KeyDirectory;
  clock: Clock;
  /** With the ids of the call. */
  log: Log;
}

const REASONS = {
  unknown: 'is not known to the router',
  management: 'is a management key, which calls no model',
  disabled: 'is disabled',
  expired: 'has expired',
  'oauth-expired': 'has expired: its OAuth session is over',
} as const;

export interface CheckedKey {
  /** Null: there is no such key. */
  keyId: string | null;
  /** Null: there is none, or it is not needed. */
  key: CallerKey | null;
  /** `router.key_refused`; null: it may call models. */
  error: SwitchyardError | null;
}

/**
 * The key of an actor's call, by the hash of its secret. Waits while the database is away. A key that may not call models is logged, with its label.
 * @param running its end ends the wait
 * @throws the last error of the wait
 */
export async function keyOfCall(hash: string, running: Pick<RunningItem, 'signal'>, { keys, clock, log }: Deps): Promise<CheckedKey> {
  const key = await findKey(hash, running, keys);
  const reason = key === null ? 'unknown' : key.isManagement ? 'management' : refusalOf(key, clock.nowMs());
  const keyId = key?.id ?? null;
  if (reason === null) return { keyId, key, error: null };
  log.error({ key_id: keyId, key_label: key?.label ?? null }, `the key of the agent's model calls (llms.api_key) ${REASONS[reason]}`);
  return { keyId, key, error: new SwitchyardError('router.key_refused', `The key of the agent's model calls ${REASONS[reason]}`) };
}

/** Of a call that is not begun: for its record, and not waited for. */
export async function keyOfRefused(hash: string, { keys }: Deps): Promise<CheckedKey> {
  try {
    return { keyId: (await keys.find(hash))?.id ?? null, key: null, error: null };
  } catch {
    return { keyId: null, key: null, error: null };
  }
}

/** A key that is cached costs less than the signal of its item, which is made when it is first read. */
function findKey(hash: string, running: Pick<RunningItem, 'signal'>, keys: KeyDirectory): ReturnType<KeyDirectory['find']> {
  let first: ReturnType<KeyDirectory['find']>;
  try {
    first = keys.find(hash);
  } catch (error) {
    first = Promise.reject(error);
  }
  if (!(first instanceof Promise)) return first;
  let asked: Promise<CallerKey | null> | null = first;
  const ask = async () => {
    const found = asked ?? keys.find(hash);
    asked = null;
    return found;
  };
  return retryWhileTransient(ask, running.signal);
}
