import type { FinishReason, Logprobs } from './chat-completion.ts';

/** What an adapter yields, in any dialect. */
export type ProviderPart =
  /** No delta is empty. `logprobs`: only when requested and given by the upstream. */
  | { type: 'text-delta'; text: string; logprobs?: Logprobs }
  | { type: 'reasoning-delta'; text: string }
  | { type: 'refusal-delta'; text: string }
  /** `index` is our number of the tool call, from 0. */
  | { type: 'tool-call-start'; index: number; id: string; name: string }
  | { type: 'tool-call-delta'; index: number; arguments: string }
  | { type: 'usage'; usage: ProviderUsage }
  /** Exactly one: a stream without it was cut off. */
  | { type: 'finish'; reason: FinishReason; nativeReason: string | null };

export interface ProviderUsage {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  reasoningTokens: number;
}
