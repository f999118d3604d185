import type { RouterCall } from '#bus/messages/router.ts';
import type { Refusal } from '#services/work/item-kind.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { Reservations } from '#shared/credit/reservations.ts';
import { type WorstCase, worstCaseOf } from '#shared/credit/worst-case.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey, KeyDirectory } from '#shared/keys/caller-key.ts';
import { isRated, type RatedCall } from '#shared/rates/rate-limits.ts';
import { withinTokens } from '#shared/rates/within-tokens.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Catalogue, namedModels } from './call/candidates.ts';
import { askedOf } from './call/choice.ts';
import { keyOfCall } from './call-key.ts';
import { isCheck } from './call-kind.ts';
import type { CallRates } from './call-rates.ts';
import type { RouterSetup } from './router-setup.ts';

/** `key`: the key of an actor's call may not call models, has no credit for it, or is over its limits. */
export type CallRefusal = Refusal | { why: 'key'; error: SwitchyardError };

interface Deps {
  keys: KeyDirectory;
  reservations: Reservations;
  rates: CallRates;
  defaultCompletionTokens: number;
  catalogue: Catalogue;
  enginePrices: RouterSetup['enginePrices'];
  clock: Clock;
  /** With the ids of the call. */
  log: Log;
}

interface CallUnderKey {
  call: RouterCall;
  /** Null: it is to be executed. */
  refusal: CallRefusal | null;
  /** Null: its key has no limits per minute or at once, or it is refused. */
  rated: RatedCall | null;
}

/**
 * An actor's call under the key of its hash. No gateway has admitted it: it counts for the limits of its key here, and for a key with a credit limit the most
 * that it may cost is reserved, before the first attempt. Waits while the key is over its limits, and while the database is away. A redelivered call counts
 * again, since its requests reach a provider again, and keeps its slot and its reservation, which have its id.
 *
 * @throws once the lease is lost, or the wait for the key has ended
 */
export async function callUnderKey(call: RouterCall, hash: string, running: RunningItem, deps: Deps): Promise<CallUnderKey> {
  const { keyId, key, error } = await keyOfCall(hash, running, deps);
  const named = { ...call, keyId: keyId ?? call.keyId };
  const refused = (refusal: CallRefusal): CallUnderKey => ({ call: named, refusal, rated: null });
  if (error !== null) return refused({ why: 'key', error });
  // It costs nothing, and a model is asked for nothing.
  if (isCheck(call)) return { call: named, refusal: null, rated: null };
  if (key === null || (key.limitNano === null && !isRated(key.rates))) return { call: named, refusal: null, rated: null };
  let rated: RatedCall | null = null;
  try {
    const worst = worstCase(named, call.maxTokens, deps);
    const { amountNano, tokens, maxTokens } = withinTokens(worst, key.rates, (ceiling) => worstCase(named, ceiling, deps));
    if (isRated(key.rates)) rated = await deps.rates.admit(call, key, tokens, running.signal, deps.log);
    const { limitNano } = key;
    if (limitNano !== null) await reserve(call, { ...key, limitNano }, amountNano, running.signal, deps);
    return { call: { ...named, ...(limitNano !== null && { reserved: true }), maxTokens }, refusal: null, rated };
  } catch (thrown) {
    rated?.release();
    if (running.isLeaseLost) rated?.leave();
    else rated?.end();
    if (running.isLeaseLost) throw thrown;
    // A statement that was not answered in time may have reserved.
    if (running.cause !== null && key.limitNano !== null) deps.reservations.release(call.callId, key.id);
    if (running.isCancelled()) return refused({ why: 'cancelled' });
    if (running.cause === 'deadline') return refused({ why: 'deadline' });
    if (!(thrown instanceof SwitchyardError) || !(thrown.code in REASONS)) throw thrown;
    deps.log.error({ key_id: keyId, key_label: key.label }, REASONS[thrown.code as keyof typeof REASONS]);
    return refused({ why: 'key', error: thrown });
  }
}

/** Of refusals by limits. */
const REASONS = {
  'router.payment_required': "the credit of the key of the agent's model calls (llms.api_key) does not suffice",
  'request.rate_limited': "the key of the agent's model calls (llms.api_key) is over its limits, and the call can not wait for them",
} as const;

/** With the plugins that the account's rules add. */
function worstCase(call: RouterCall, maxTokens: number | null, { catalogue, enginePrices, defaultCompletionTokens }: Deps): WorstCase {
  const request = askedOf(call, catalogue);
  return worstCaseOf({ request, embedding: call.embedding, models: namedModels(request, catalogue), defaultCompletionTokens, maxTokens, ...enginePrices });
}

function reserve(
  { callId, deadlineAtMs }: RouterCall,
  key: CallerKey & { limitNano: number },
  amountNano: number,
  signal: AbortSignal,
  deps: Deps,
): Promise<void> {
  const { id: keyId, limitNano, limitReset } = key;
  return retryWhileTransient(() => deps.reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs, isAskedAgain: true }), signal);
}
