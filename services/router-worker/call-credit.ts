import type { RouterCall } from '#bus/messages/router.ts';
import type { Refusal } from '#services/work/item-kind.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { Reservations } from '#shared/credit/reservations.ts';
import { worstCaseOf } from '#shared/credit/worst-case.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey, KeyDirectory } from '#shared/keys/caller-key.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Catalogue, namedModels } from './call/candidates.ts';
import { keyOfCall } from './call-key.ts';

/** `key`: the key of an actor's call may not call models, or has no credit for it. */
export type CallRefusal = Refusal | { why: 'key'; error: SwitchyardError };

interface Deps {
  keys: KeyDirectory;
  reservations: Reservations;
  defaultCompletionTokens: number;
  catalogue: Catalogue;
  clock: Clock;
  /** With the ids of the call. */
  log: Log;
}

/**
 * An actor's call under the key of its hash. No gateway has admitted it: for a key with a credit limit the most that it may cost is reserved here, before the
 * first attempt, once per call id. Waits while the database is away.
 *
 * @throws once the lease is lost, or the wait for the key has ended
 */
export async function callUnderKey(
  call: RouterCall,
  hash: string,
  running: RunningItem,
  deps: Deps,
): Promise<{ call: RouterCall; refusal: CallRefusal | null }> {
  const { keyId, key, error } = await keyOfCall(hash, running.signal, deps);
  const named = { ...call, keyId: keyId ?? call.keyId };
  if (error !== null) return { call: named, refusal: { why: 'key', error } };
  if (key === null || key.limitNano === null) return { call: named, refusal: null };
  try {
    const maxTokens = await reserved(call, { ...key, limitNano: key.limitNano }, running.signal, deps);
    return { call: { ...named, reserved: true, maxTokens }, refusal: null };
  } catch (thrown) {
    if (running.isLeaseLost) throw thrown;
    if (running.isCancelled()) return { call: named, refusal: { why: 'cancelled' } };
    if (running.cause === 'deadline') return { call: named, refusal: { why: 'deadline' } };
    if (!(thrown instanceof SwitchyardError) || thrown.code !== 'router.payment_required') throw thrown;
    deps.log.error({ key_id: keyId, key_label: key.label }, "the credit of the key of the agent's model calls (llms.api_key) does not suffice");
    return { call: named, refusal: { why: 'key', error: thrown } };
  }
}

/** @returns the call's ceiling on completion tokens */
async function reserved(call: RouterCall, key: CallerKey & { limitNano: number }, signal: AbortSignal, deps: Deps): Promise<number | null> {
  const { callId, deadlineAtMs, request, embedding } = call;
  const { id: keyId, limitNano, limitReset } = key;
  const { catalogue, defaultCompletionTokens, reservations } = deps;
  const { amountNano, maxTokens } = worstCaseOf({
    request,
    embedding,
    models: namedModels(request, catalogue),
    defaultCompletionTokens,
    maxTokens: call.maxTokens,
  });
  await retryWhileTransient(() => reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs }), signal);
  return maxTokens;
}
