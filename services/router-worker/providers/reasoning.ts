import { z } from 'zod';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';

/** Share of all tokens that reasoning may take. */
export const EFFORT_SHARES = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95, max: 0.95 } as const;
export type Effort = keyof typeof EFFORT_SHARES;

const effortName = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** The reasoning of a request; `budgetTokens` null: only the effort is given. */
export type RequestedReasoning = { isOff: true } | { isOff: false; effort: Effort; budgetTokens: number | null };

/**
 * @param maxTokens of the answer; turns a budget into an effort for models that know no budgets. Null: no limit
 * @returns null when the request says nothing of reasoning
 */
export function requestedReasoning(request: ChatRequest, maxTokens: number | null): RequestedReasoning | null {
  // Of most calls. A parse that fails costs as much as the rest of a request.
  if (request.reasoning === undefined && request.reasoning_effort === undefined) return null;
  const { effort, enabled, max_tokens: budget } = request.reasoning ?? {};
  // `reasoning_effort` is OpenAI's name.
  const named = effort ?? effortName.safeParse(request.reasoning_effort).data ?? null;
  if (named === 'none' || (named === null && enabled === false)) return { isOff: true };
  if (budget) return { isOff: false, effort: named ?? (maxTokens === null ? 'medium' : nearestEffort(budget / maxTokens)), budgetTokens: budget };
  if (named !== null) return { isOff: false, effort: named, budgetTokens: null };
  return enabled === true ? { isOff: false, effort: 'medium', budgetTokens: null } : null;
}

/** The least that APIs with budgets take. */
export const MIN_BUDGET_TOKENS = 1_024;
/** Of a limit, for an answer beside a budget that does not fit into it: what the highest effort leaves. */
const MOST_SHARE = EFFORT_SHARES.max;

/** A budget with which the limit leaves room for an answer. 0: it has no room for a budget of the least size. */
export function budgetWithin(budget: number, maxTokens: number): number {
  const most = Math.floor(maxTokens * MOST_SHARE);
  return most < MIN_BUDGET_TOKENS ? 0 : Math.min(budget, most);
}

function nearestEffort(share: number): Effort {
  let nearest: Effort = 'medium';
  // `max` is never given for a budget.
  for (const effort of ['minimal', 'low', 'medium', 'high', 'xhigh'] as const) {
    if (Math.abs(EFFORT_SHARES[effort] - share) < Math.abs(EFFORT_SHARES[nearest] - share)) nearest = effort;
  }
  return nearest;
}
