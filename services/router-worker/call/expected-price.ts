import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';
import type { PromptSize } from '#shared/credit/prompt-size.ts';
import type { Prices } from './model-endpoint.ts';

/** Of answers, as a rule; limits of requests are mostly far above. */
const TYPICAL_COMPLETION_TOKENS = 500;
const TOKENS_PER_PRICE = 1_000_000;

/** What a request is expected to use. */
export interface TokenMix {
  prompt: PromptSize;
  completionTokens: number;
}

export function tokenMixOf(request: ChatRequest, prompt: PromptSize, embedding: EmbeddingCall | null): TokenMix {
  if (embedding === null) return { prompt, completionTokens: Math.min(askedTokens(request) ?? TYPICAL_COMPLETION_TOKENS, TYPICAL_COMPLETION_TOKENS) };
  const ids = (embedding.tokens ?? []).reduce((sum, input) => sum + input.length, 0);
  return { prompt: { ...prompt, textTokens: prompt.textTokens + ids }, completionTokens: 0 };
}

/** The limit of the request's completion; null: it has none. */
export function askedTokens({ max_completion_tokens: newer, max_tokens: older }: ChatRequest): number | null {
  return newer ?? older ?? null;
}

/** What the request is expected to cost, in USD per million of its tokens. Pictures and recordings without a price of their own are part of the prompt. */
export function expectedPrice({ prompt, completion, request, image, audio }: Prices, mix: TokenMix): number {
  const { textTokens, images, recordings, imageTokens, recordingTokens } = mix.prompt;
  const promptTokens = textTokens + (image === null ? imageTokens : 0) + (audio === null ? recordingTokens : 0);
  const fees = request + images * (image ?? 0) + recordings * (audio ?? 0);
  const cost = promptTokens * prompt + mix.completionTokens * completion + fees * TOKENS_PER_PRICE;
  // By the same number at each endpoint, so that costs keep their ratios.
  return cost / Math.max(1, textTokens + mix.completionTokens);
}
