import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { EFFORT_SHARES, type Effort, requestedReasoning } from '../reasoning.ts';

/** The most that 2.5 models take, and the least that the largest of them does: it can't be switched off. */
const MAX_BUDGET = { pro: 32_768, other: 24_576 } as const;
const MIN_PRO_BUDGET = 128;

type Level = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';
const LEVELS: Readonly<Record<Effort, Level>> = { minimal: 'MINIMAL', low: 'LOW', medium: 'MEDIUM', high: 'HIGH', xhigh: 'HIGH', max: 'HIGH' };

export interface ThinkingConfig {
  includeThoughts: boolean;
  thinkingBudget?: number;
  thinkingLevel?: Level;
}

/** Models from 3 on think by levels, and demand the signatures of their calls back. */
export function isLevelled(model: string): boolean {
  return /gemini-(?:[3-9]|\d{2,}|[a-z-]+-latest)/.test(model);
}

/** Null: nothing is sent. */
export function toThinking(model: string, request: ChatRequest, maxTokens: number | null): ThinkingConfig | null {
  const requested = requestedReasoning(request, maxTokens);
  if (requested === null) return null;
  const isPro = model.includes('pro');
  const includeThoughts = !requested.isOff && request.reasoning?.exclude !== true;
  if (isLevelled(model)) return { includeThoughts, thinkingLevel: levelOf(requested.isOff ? 'minimal' : requested.effort, isPro) };
  const most = isPro ? MAX_BUDGET.pro : MAX_BUDGET.other;
  const asked = requested.isOff ? 0 : (requested.budgetTokens ?? Math.floor((maxTokens ?? most) * EFFORT_SHARES[requested.effort]));
  const budget = maxTokens === null ? asked : Math.min(asked, Math.floor(maxTokens * EFFORT_SHARES.max));
  return { includeThoughts, thinkingBudget: Math.max(Math.min(budget, most), isPro ? MIN_PRO_BUDGET : 0) };
}

/** The largest models know no `MINIMAL`, the first of them no `MEDIUM`. */
function levelOf(effort: Effort, isPro: boolean): Level {
  const level = LEVELS[effort];
  if (!isPro) return level;
  return level === 'MINIMAL' ? 'LOW' : level === 'MEDIUM' ? 'HIGH' : level;
}
