import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { toThinking } from '../anthropic/to-thinking.ts';
import { type Effort, requestedReasoning } from '../reasoning.ts';
import type { BedrockTraits } from './model-traits.ts';
import type { MarkedMessage } from './to-messages.ts';

/** Of the budget of a request without any limit, which the API takes for the model's largest. */
const DEFAULT_MAX_TOKENS = 4_096;

type Level = 'low' | 'medium' | 'high';
const LEVELS: Readonly<Record<Effort, Level>> = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'high', max: 'high' };

export interface Reasoning {
  /** Of `additionalModelRequestFields`. */
  fields: Record<string, unknown>;
  /** Of `outputConfig`; undefined: not sent. */
  effort?: string | undefined;
  isThinking: boolean;
  /** `temperature`, `top_p` and `top_k` are refused beside it. */
  excludesSampling: boolean;
}

export interface ReasoningContext {
  traits: BedrockTraits;
  /** Null: the request has no limit. */
  maxTokens: number | null;
  /** Whether the limit is the caller's, and is sent. */
  isLimited: boolean;
  messages: readonly MarkedMessage[];
  isToolForced: boolean;
}

/** Each vendor's models have fields of their own. */
export function toReasoning(request: ChatRequest, { traits, maxTokens, isLimited, messages, isToolForced }: ReasoningContext): Reasoning {
  if (traits.family === 'claude') {
    const { thinking, effort } = toThinking(request, {
      traits,
      maxTokens: maxTokens ?? DEFAULT_MAX_TOKENS + (request.reasoning?.max_tokens ?? 0),
      isContinued: messages.at(-1)?.role === 'assistant',
      lacksThinking: lacksReasoning(messages),
      isToolForced,
    });
    return {
      fields: thinking === undefined ? {} : { thinking },
      effort,
      isThinking: thinking !== undefined && thinking.type !== 'disabled',
      excludesSampling: false,
    };
  }
  const requested = requestedReasoning(request, maxTokens);
  if (requested === null || requested.isOff || !traits.takesEffort) return NONE;
  const level = LEVELS[requested.effort];
  if (traits.family === 'gpt-oss') return { ...NONE, fields: { reasoning_effort: level } };
  return traits.family === 'nova' ? novas(level, isLimited) : NONE;
}

const NONE: Reasoning = { fields: {}, isThinking: false, excludesSampling: false };

/** With the effort `high` Nova refuses sampling, and a limit of tokens: the caller's limit has precedence. */
function novas(level: Level, isLimited: boolean): Reasoning {
  const maxReasoningEffort = level === 'high' && isLimited ? 'medium' : level;
  return { fields: { reasoningConfig: { type: 'enabled', maxReasoningEffort } }, isThinking: false, excludesSampling: maxReasoningEffort === 'high' };
}

/** Clients drop reasoning; then the API refuses to continue the turn with thinking. */
function lacksReasoning(messages: readonly MarkedMessage[]): boolean {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const [first] = last?.content ?? [];
  const isCalling = last?.content.some(({ item }) => 'toolUse' in item) ?? false;
  return isCalling && !(first !== undefined && 'reasoningContent' in first.item);
}
