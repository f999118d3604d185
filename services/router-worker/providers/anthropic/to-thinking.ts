import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { budgetWithin, EFFORT_SHARES, type Effort, MIN_BUDGET_TOKENS, type RequestedReasoning, requestedReasoning } from '../reasoning.ts';
import type { ModelTraits } from './model-traits.ts';

const MAX_BUDGET_TOKENS = 128_000;

type ApiEffort = 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** Fields of a request; absent: not sent. */
export interface Thinking {
  thinking?: { type: 'enabled'; budget_tokens: number } | { type: 'adaptive'; display: 'summarized' } | { type: 'disabled' };
  effort?: ApiEffort;
}

export interface ThinkingContext {
  traits: ModelTraits;
  maxTokens: number;
  /** Whether the last message is an answer that the model is to continue. */
  isContinued: boolean;
  /** Whether the last answer has tool calls and not its thinking: clients drop it, and the API then refuses to continue the turn with thinking. */
  lacksThinking: boolean;
  /** Whether the model must call a tool, which excludes thinking. */
  isToolForced: boolean;
}

/**
 * Thinking within the limit of the caller's tokens: a limit too low for the smallest budget means none. What the API would refuse beside thinking (a forced tool,
 * a begun answer, a tool call that came without its thinking) has precedence, as it is part of what is asked.
 */
export function toThinking(request: ChatRequest, context: ThinkingContext): Thinking {
  const requested = requestedReasoning(request, context.maxTokens);
  const isExcluded = context.isToolForced || context.isContinued;
  if (context.traits.thinking === 'budget') return budgeted(requested, context, isExcluded);
  const { effort, ...thinking } = adaptive(requested, request, context, isExcluded);
  return effort === undefined || !context.traits.takesEffort ? thinking : { ...thinking, effort };
}

function budgeted(requested: RequestedReasoning | null, { maxTokens, lacksThinking }: ThinkingContext, isExcluded: boolean): Thinking {
  if (requested === null || requested.isOff || isExcluded || lacksThinking) return {};
  const asked = requested.budgetTokens ?? Math.floor(maxTokens * EFFORT_SHARES[requested.effort]);
  const budget = budgetWithin(Math.max(Math.min(asked, MAX_BUDGET_TOKENS), MIN_BUDGET_TOKENS), maxTokens);
  return budget === 0 ? {} : { thinking: { type: 'enabled', budget_tokens: budget } };
}

function adaptive(requested: RequestedReasoning | null, { verbosity }: ChatRequest, { traits }: ThinkingContext, isExcluded: boolean): Thinking {
  const named = typeof verbosity === 'string' && verbosity in EFFORTS ? effortOf(verbosity as Effort, traits) : undefined;
  const effort = requested === null || requested.isOff ? named : effortOf(requested.effort, traits);
  const withEffort = effort === undefined ? {} : { effort };
  if (traits.thinking === 'always') return requested?.isOff ? { effort: 'low' } : { ...(requested === null ? {} : { thinking: SUMMARIZED }), ...withEffort };
  if (requested === null) return withEffort;
  if (requested.isOff || isExcluded) return { thinking: { type: 'disabled' }, ...withEffort };
  return { thinking: SUMMARIZED, ...withEffort };
}

const SUMMARIZED = { type: 'adaptive', display: 'summarized' } as const;

const EFFORTS: Readonly<Record<Effort, ApiEffort>> = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh', max: 'max' };

/** What a model lacks is replaced by the next higher effort that it has, or by `high`. */
function effortOf(effort: Effort, { hasHighestEffort, hasMaxEffort }: ModelTraits): ApiEffort {
  const known = effort === 'xhigh' && !hasHighestEffort ? 'max' : EFFORTS[effort];
  return known === 'max' && !hasMaxEffort ? 'high' : known;
}
