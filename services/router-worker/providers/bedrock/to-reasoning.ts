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
}

export interface ReasoningContext {
  traits: BedrockTraits;
  /** Null: the request has no limit. */
  maxTokens: number | null;
  messages: readonly MarkedMessage[];
  isToolForced: boolean;
}

/** Each vendor's models have fields of their own. */
export function toReasoning(request: ChatRequest, { traits, maxTokens, messages, isToolForced }: ReasoningContext): Reasoning {
  if (traits.family === 'claude') {
    const { thinking, effort } = toThinking(request, {
      traits,
      maxTokens: maxTokens ?? DEFAULT_MAX_TOKENS,
      isContinued: messages.at(-1)?.role === 'assistant',
      lacksThinking: lacksReasoning(messages),
      isToolForced,
    });
    return { fields: thinking === undefined ? {} : { thinking }, effort, isThinking: thinking !== undefined && thinking.type !== 'disabled' };
  }
  const requested = requestedReasoning(request, maxTokens);
  if (requested === null || requested.isOff) return NONE;
  if (traits.family === 'gpt-oss') return { fields: { reasoning_effort: LEVELS[requested.effort] }, isThinking: false };
  if (traits.family === 'nova') return { fields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: LEVELS[requested.effort] } }, isThinking: false };
  return NONE;
}

const NONE: Reasoning = { fields: {}, isThinking: false };

/** Clients drop reasoning; then the API refuses to continue the turn with thinking. */
function lacksReasoning(messages: readonly MarkedMessage[]): boolean {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const [first] = last?.content ?? [];
  const isCalling = last?.content.some(({ item }) => 'toolUse' in item) ?? false;
  return isCalling && !(first !== undefined && 'reasoningContent' in first.item);
}
