import type { RouterCall } from '#bus/messages/router.ts';
import { type Answer, hasContent } from '#shared/surfaces/answer.ts';
import type { CallResult } from './call/execute-call.ts';
import type { Attempted } from './call/run-call.ts';
import { usageOf } from './call/usage.ts';

/** Attempts of one call: their number and the last, for its log line. */
export class CallAttempts {
  #count = 0;
  #last: Attempted | null = null;

  add(attempt: Attempted): void {
    this.#count += 1;
    this.#last = attempt;
  }

  get count(): number {
    return this.#count;
  }

  /** Null: no provider was asked. */
  get last(): Attempted | null {
    return this.#last;
  }
}

interface EndedCall {
  call: RouterCall;
  result: CallResult;
  attempts: CallAttempts;
  /** What aborted it; null: it ended by itself. */
  cause: 'cancelled' | 'deadline' | 'lease-lost' | null;
  durationMs: number;
}

/** The fields of the one log line per call (docs/operations.md, "Log lines"). */
export function callLine({ call, result, attempts, cause, durationMs }: EndedCall): Record<string, unknown> {
  const { count, last } = attempts;
  return {
    model: last?.candidate.model.id ?? call.request.model ?? call.request.models?.[0] ?? null,
    provider: last?.candidate.provider.slug ?? null,
    attempts: count,
    ...usageIn(result, last),
    duration_ms: Math.round(durationMs),
    finish: finishOf(result, last, cause),
    ...(result.type === 'failed' ? { code: result.failure.code } : {}),
  };
}

function usageIn(result: CallResult, last: Attempted | null): { prompt_tokens: number; completion_tokens: number; cost_usd: number | null } {
  if (result.type === 'completed')
    return { prompt_tokens: result.usage.promptTokens, completion_tokens: result.usage.completionTokens, cost_usd: result.costUsd ?? null };
  if (last === null || !isUsed(last.answer)) return { prompt_tokens: 0, completion_tokens: 0, cost_usd: 0 };
  const { candidate, answer } = last;
  const usage = usageOf(answer, candidate.request, candidate.endpoint.prices, { isBroken: true });
  return { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens, cost_usd: usage.cost ?? null };
}

function isUsed(answer: Answer): boolean {
  return answer.usage !== null || hasContent(answer);
}

function finishOf(result: CallResult, last: Attempted | null, cause: EndedCall['cause']): string {
  if (result.type === 'completed') return result.finishReason;
  if (cause !== null) return cause === 'deadline' ? 'timeout' : 'cancelled';
  return last !== null && hasContent(last.answer) ? 'error' : 'failed';
}
