import type { FinishReason, Logprobs, ToolCall } from '../contracts/router/chat-completion.ts';
import type { ProviderPart, ProviderUsage } from '../contracts/router/provider-part.ts';

/** An answer, accumulated from its parts. */
export interface Answer {
  /** Whether text is kept. A streamed answer keeps lengths alone. */
  readonly isRetained: boolean;
  text: string;
  reasoning: string;
  refusal: string;
  logprobs: Logprobs | null;
  /** Characters of visible content, kept or not. */
  textChars: number;
  reasoningChars: number;
  refusalChars: number;
  /** Of excluded reasoning, which is billed all the same. */
  hiddenReasoningChars: number;
  toolCalls: ToolCall[];
  /** Null until the finish part. */
  finishReason: FinishReason | null;
  nativeReason: string | null;
  /** Null when the upstream reports none. */
  usage: ProviderUsage | null;
}

export function emptyAnswer(isRetained = true): Answer {
  return {
    isRetained,
    text: '',
    reasoning: '',
    refusal: '',
    logprobs: null,
    textChars: 0,
    reasoningChars: 0,
    refusalChars: 0,
    hiddenReasoningChars: 0,
    toolCalls: [],
    finishReason: null,
    nativeReason: null,
    usage: null,
  };
}

export function hasContent({ textChars, reasoningChars, refusalChars, toolCalls }: Answer): boolean {
  return textChars + reasoningChars + refusalChars > 0 || toolCalls.length > 0;
}

/** Adds a part in place. @returns characters of content added */
export function addPart(answer: Answer, part: ProviderPart): number {
  switch (part.type) {
    case 'text-delta':
      answer.textChars += part.text.length;
      if (answer.isRetained) answer.text += part.text;
      if (answer.isRetained && part.logprobs !== undefined) answer.logprobs = joined(answer.logprobs, part.logprobs);
      return part.text.length;
    case 'reasoning-delta':
      answer.reasoningChars += part.text.length;
      if (answer.isRetained) answer.reasoning += part.text;
      return part.text.length;
    case 'refusal-delta':
      answer.refusalChars += part.text.length;
      if (answer.isRetained) answer.refusal += part.text;
      return part.text.length;
    case 'tool-call-start':
      answer.toolCalls[part.index] = { id: part.id, type: 'function', function: { name: part.name, arguments: '' } };
      return part.id.length + part.name.length;
    case 'tool-call-delta': {
      const call = answer.toolCalls[part.index];
      if (call !== undefined) call.function.arguments += part.arguments;
      return part.arguments.length;
    }
    case 'usage':
      answer.usage = part.usage;
      return 0;
    case 'finish':
      answer.finishReason = part.reason;
      answer.nativeReason = part.nativeReason;
      return 0;
  }
}

/** For clients: `tool_calls` when there are any, also where the upstream reports `stop`. */
export function finishReasonOf({ finishReason, toolCalls }: Answer): FinishReason {
  if (finishReason === null) return 'error';
  return finishReason === 'stop' && toolCalls.length > 0 ? 'tool_calls' : finishReason;
}

function joined(before: Logprobs | null, next: Logprobs): Logprobs {
  if (before === null) return { content: next.content && [...next.content], refusal: next.refusal && [...next.refusal] };
  if (next.content) before.content = append(before.content, next.content);
  if (next.refusal) before.refusal = append(before.refusal, next.refusal);
  return before;
}

function append<Item>(list: Item[] | null, items: readonly Item[]): Item[] {
  if (list === null) return [...items];
  list.push(...items);
  return list;
}
