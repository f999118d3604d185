import type { RouterCall } from '#bus/messages/router.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { hasContent } from '#shared/surfaces/answer.ts';
import type { Attempted } from './call/attempt.ts';
import type { Decision } from './call/decision.ts';
import type { CallResult } from './call/execution.ts';
import type { Bill } from './call/usage.ts';

interface EndedCall {
  call: RouterCall;
  result: CallResult;
  attempts: readonly Attempted[];
  /** Null: none was made. */
  decision: Decision | null;
  /** Null: nothing was used. */
  bill: Bill | null;
  /** What aborted it; null: it ended by itself. */
  cause: 'cancelled' | 'deadline' | 'lease-lost' | null;
  durationMs: number;
}

/** The fields of the one log line per call (docs/operations.md, "Log lines"). */
export function callLine({ call, result, attempts, decision, bill, cause, durationMs }: EndedCall): Record<string, unknown> {
  const last = attempts.at(-1) ?? null;
  return {
    model: last?.candidate.model.id ?? call.request.model ?? call.request.models?.[0] ?? null,
    provider: last?.candidate.provider.slug ?? null,
    attempts: attempts.length,
    ...(attempts.some(({ hedge }) => hedge !== undefined) ? { hedged: true } : {}),
    strategy: decision?.strategy ?? null,
    ...usageIn(bill),
    duration_ms: Math.round(durationMs),
    finish: finishOf(result, last, cause),
    ...(result.type === 'failed' ? { code: result.failure.code } : {}),
  };
}

function usageIn(bill: Bill | null): { prompt_tokens: number; completion_tokens: number; cost_usd: number | null } {
  if (bill === null) return { prompt_tokens: 0, completion_tokens: 0, cost_usd: 0 };
  const { usage, costNano } = bill;
  return { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens, cost_usd: costNano === null ? null : usdOfNano(costNano) };
}

function finishOf(result: CallResult, last: Attempted | null, cause: EndedCall['cause']): string {
  if (result.type === 'completed') return result.finishReason;
  if (cause !== null) return cause === 'deadline' ? 'timeout' : 'cancelled';
  return last !== null && hasContent(last.answer) ? 'error' : 'failed';
}
