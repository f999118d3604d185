import type { RouterCall } from '#bus/messages/router.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { refusalReasonOf } from '#shared/errors/refusal-reason.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Attempted } from './call/attempt.ts';
import { type Catalogue, namedModels } from './call/candidates.ts';
import type { CallResult } from './call/execution.ts';
import type { Bill } from './call/usage.ts';
import type { ServedBy } from './usage-record.ts';

/** Label of a model or provider that the configuration does not name. */
const OTHER = 'other';

interface CountedCall {
  call: RouterCall;
  result: CallResult;
  /** Why it did not complete, where that is no error of its own. */
  label: 'cancelled' | 'abandoned' | 'deadline' | null;
  attempts: readonly Attempted[];
  /** The endpoint of an answer that another worker gave; null: the last attempt says it. */
  servedBy: ServedBy | null;
  /** Null: nothing was used. */
  bill: Bill | null;
}

/** Counts an ended call, what it used and what it costs. Labels are names of the configuration, so that callers can make no series. */
export function countCall(ended: CountedCall, catalogue: Catalogue, metrics: Metrics): void {
  const { call, result, label, attempts, servedBy, bill } = ended;
  const { model, provider } = endpointOf(ended, catalogue);
  const isStopped = label === 'cancelled' || label === 'abandoned';
  const outcome = result.type === 'failed' && isStopped ? label : result.type;
  metrics.add('routerCalls', { kind: call.reply === null ? 'client' : 'actor', model, provider, outcome });
  if (result.type === 'failed' && attempts.length === 0 && servedBy === null) {
    const reason = refusalReasonOf(result.failure);
    if (reason !== null) metrics.add('refusals', { reason });
  }
  if (bill === null) return;
  const { usage, costNano } = bill;
  const count = (kind: 'prompt' | 'completion' | 'cached' | 'cache_write' | 'reasoning', tokens = 0) => {
    if (tokens > 0) metrics.add('tokens', { model, provider, kind }, tokens);
  };
  count('prompt', usage.prompt_tokens);
  count('completion', usage.completion_tokens);
  count('cached', usage.prompt_tokens_details?.cached_tokens);
  count('cache_write', usage.prompt_tokens_details?.cache_write_tokens);
  count('reasoning', usage.completion_tokens_details?.reasoning_tokens);
  if (costNano !== null) metrics.add('costUsd', { model, provider }, usdOfNano(costNano));
}

function endpointOf({ call, attempts, servedBy }: CountedCall, catalogue: Catalogue): { model: string; provider: string } {
  if (servedBy !== null) return { model: servedBy.model, provider: servedBy.provider ?? OTHER };
  const last = attempts.at(-1);
  if (last !== undefined) return { model: last.candidate.model.id, provider: last.candidate.provider.slug };
  return { model: namedModels(call.request, catalogue)[0]?.id ?? OTHER, provider: OTHER };
}
