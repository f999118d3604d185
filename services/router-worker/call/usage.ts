import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import { usageDetailsOf } from './usage-details.ts';

/** Prices are per million tokens with at most nine decimals; integers keep them exact. */
const PRICE_PLACES = 9;
const TOKENS_PER_PRICE = 1_000_000n;
const NANO_USD_PER_USD = 1_000_000_000;
const CHARS_PER_TOKEN = 4;

type Prices = NonNullable<EndpointConfig['prices']>;

/** Tokens and cost of an answer. Unreported usage is estimated at four characters per token. A broken answer costs nothing. */
export function usageOf(answer: Answer, request: ChatRequest, prices: Prices | undefined, { isBroken = false } = {}): Usage {
  const used = answer.usage ?? counted(answer, request);
  const cost = prices === undefined ? null : isBroken ? 0n : costNanoUsd(used, prices);
  const usage: Usage = {
    prompt_tokens: used.promptTokens,
    completion_tokens: used.completionTokens,
    total_tokens: used.promptTokens + used.completionTokens,
    ...usageDetailsOf(used),
  };
  if (cost !== null) usage.cost = Number(cost) / NANO_USD_PER_USD;
  return usage;
}

/** Billionths of a US dollar, rounded half up once. Cached tokens are part of the prompt; `request` is per call. */
export function costNanoUsd({ promptTokens, completionTokens, cachedTokens }: ProviderUsage, prices: Prices): bigint {
  const cached = Math.min(cachedTokens, promptTokens);
  const perMillion =
    BigInt(promptTokens - cached) * toNano(prices.prompt) +
    BigInt(cached) * toNano(prices.cached_prompt ?? prices.prompt) +
    BigInt(completionTokens) * toNano(prices.completion) +
    TOKENS_PER_PRICE * toNano(prices.request ?? '0');
  return (perMillion + TOKENS_PER_PRICE / 2n) / TOKENS_PER_PRICE;
}

function toNano(price: string): bigint {
  const [whole = '0', fraction = ''] = price.split('.');
  return BigInt(whole + fraction.slice(0, PRICE_PLACES).padEnd(PRICE_PLACES, '0'));
}

function counted({ textChars, reasoningChars, refusalChars, hiddenReasoningChars, toolCalls }: Answer, request: ChatRequest): ProviderUsage {
  const chars = textChars + refusalChars + toolCalls.reduce((sum, call) => sum + call.function.name.length + call.function.arguments.length, 0);
  const reasoningTokens = tokensIn(reasoningChars + hiddenReasoningChars);
  return {
    promptTokens: tokensIn(request.messages.reduce((sum, { content }) => sum + charsIn(content), 0)),
    completionTokens: reasoningTokens + tokensIn(chars),
    cachedTokens: 0,
    reasoningTokens,
  };
}

function charsIn(content: ChatRequest['messages'][number]['content']): number {
  if (typeof content === 'string') return content.length;
  return (content ?? []).reduce((sum, item) => sum + (item.type === 'text' ? item.text.length : 0), 0);
}

function tokensIn(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}
