import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import { type NanoPrices, nanoPricesOf, TOKENS_PER_PRICE } from '#shared/credit/nano-prices.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { piecesIn } from '#shared/credit/pieces.ts';
import { type PromptSize, promptSizeOf, promptTokensAt } from '#shared/credit/prompt-size.ts';
import { pricesOfTier } from '#shared/credit/service-tiers.ts';
import { optionSearches } from '#shared/credit/web-searches.ts';
import { deferredIn, withMessagesOf } from '#shared/prompts/deferred-messages.ts';
import { contentCharsOf } from '#shared/prompts/text-size.ts';
import { type Answer, hasContent } from '#shared/surfaces/answer.ts';
import type { RouterSearch } from '../pipeline/stage.ts';
import { usageDetailsOf } from './usage-details.ts';

const CHARS_PER_TOKEN = 4;

/** What decides the cost at an endpoint. */
export type BilledEndpoint = Pick<EndpointConfig, 'prices' | 'context_length'>;

/** What stages of the pipeline have used for a call, beside its provider. */
export interface AddedUse {
  /** Of the web, by the router; null: none. */
  search: RouterSearch | null;
  /** What the caller pays for it, in billionths of a US dollar. */
  costNano: number;
}

const NOTHING_ADDED: AddedUse = { search: null, costNano: 0 };

/** How an attempt ended: `aborted` by the caller, a deadline or a lost lease; `failed` by the upstream, or for lack of a worker. */
export type AttemptEnd = 'completed' | 'failed' | 'aborted';

/** What a call used, and what its caller pays for it. */
export interface Bill {
  /** As answers state it. */
  usage: Usage;
  /** In billionths of a US dollar; null: the endpoint has no prices. */
  costNano: number | null;
  /** Whether tokens were counted here, since the upstream has not stated them, or not up to the end of what came of its answer. */
  isEstimated: boolean;
  /** Part of the tokens written to a cache: those kept for an hour. Absent: the upstream reports none. */
  cacheWrite1hTokens?: number;
}

/**
 * A whole answer costs what was used; one that broke off, what the upstream had counted and what came of it. Without content nothing is charged, unless the
 * caller aborted what the upstream had counted; neither is an answer that the upstream itself ended with an error.
 * @param endpoint undefined: it is not known any more
 */
export function billOf(
  answer: Answer,
  request: ChatRequest,
  endpoint: BilledEndpoint | undefined,
  end: AttemptEnd = 'completed',
  added: AddedUse = NOTHING_ADDED,
): Bill {
  const { used, isEstimated } = usedBy(answer, request, endpoint, end);
  const prices = endpoint?.prices;
  const isCharged = end === 'completed' || isChargedBroken(answer, end);
  const sent = sentOf(request, answer);
  const cost = prices === undefined ? null : isCharged ? costOf(used, sent, billedPrices(answer.metadata.serviceTier, sent, prices)) : NO_COST;
  const usage: Usage = {
    prompt_tokens: used.promptTokens,
    completion_tokens: used.completionTokens,
    total_tokens: used.promptTokens + used.completionTokens,
    ...usageDetailsOf(used),
    is_byok: false,
  };
  const ofOptions = prices?.web_search === undefined || !isCharged ? 0 : optionSearches(sent);
  const searches = (used.webSearches ?? ofOptions) + (added.search === null ? 0 : 1);
  if (searches > 0) {
    usage.server_tool_use = { web_search_requests: searches };
    usage.server_tool_use_details = { web_search_requests: searches };
  }
  const total = used.billedNano ?? (cost === null ? null : cost.total + (isCharged ? added.costNano : 0));
  if (total !== null) usage.cost = usdOfNano(total);
  if (cost !== null) {
    usage.cost_details = {
      upstream_inference_cost: null,
      upstream_inference_prompt_cost: usdOfNano(cost.prompt),
      upstream_inference_completions_cost: usdOfNano(cost.completion),
    };
  }
  const { cacheWrite1hTokens } = used;
  return { usage, costNano: total, isEstimated, ...(cacheWrite1hTokens !== undefined && { cacheWrite1hTokens }) };
}

/** The endpoint's request without what its upstream did not get. */
export function sentOf(request: ChatRequest, { omittedFields: omitted }: Pick<Answer, 'omittedFields'>): ChatRequest {
  if (omitted === null) return request;
  const { messages: _, ...fields } = request;
  for (const name of omitted) delete fields[name];
  return withMessagesOf(request, fields);
}

/** Of the tier that served the answer. @param stated by the answer; null: none */
export function billedPrices(stated: string | null, { service_tier: asked }: ChatRequest, prices: NonNullable<EndpointConfig['prices']>): NanoPrices {
  return pricesOfTier(nanoPricesOf(prices), asked, stated);
}

function isChargedBroken(answer: Answer, end: 'failed' | 'aborted'): boolean {
  if (answer.finishReason === 'error') return false;
  if (hasContent(answer)) return true;
  const { promptTokens, completionTokens = 0 } = statedIn(answer);
  return end === 'aborted' && promptTokens !== undefined && (completionTokens > 0 || answer.vectors !== null);
}

/** What the upstream has counted of an answer. A prompt of 0 tokens is one that it has not counted. */
function statedIn({ usage, usageSoFar }: Answer): Partial<ProviderUsage> {
  const stated: Partial<ProviderUsage> = usage ?? usageSoFar?.() ?? {};
  if (stated.promptTokens !== 0) return stated;
  const { promptTokens: _, ...others } = stated;
  return others;
}

/**
 * What an answer used. The counts of one that broke off may be those of its start: then what came of it counts, and a prompt that the upstream has not counted
 * is estimated as its reservation was, but for files. Nothing is estimated behind an answer's end with its usage, and no completion above the request's limit, by
 * which it was reserved.
 */
export function usedBy(
  answer: Answer,
  request: ChatRequest,
  endpoint: BilledEndpoint | undefined,
  end: AttemptEnd,
): { used: ProviderUsage; isEstimated: boolean } {
  if (answer.usage !== null && (end === 'completed' || answer.finishReason !== null)) return { used: answer.usage, isEstimated: false };
  const stated = statedIn(answer);
  const produced = producedTokensOf(answer);
  const promptTokens = stated.promptTokens ?? (end === 'completed' ? contentTokensOf(request) : promptTokensOf(request, endpoint));
  const completionTokens = Math.max(stated.completionTokens ?? 0, Math.min(produced.completion, limitOf(request)));
  const used: ProviderUsage = {
    ...stated,
    promptTokens,
    completionTokens,
    cachedTokens: stated.cachedTokens ?? 0,
    reasoningTokens: Math.min(Math.max(stated.reasoningTokens ?? 0, produced.reasoning), completionTokens),
  };
  return { used, isEstimated: stated.promptTokens === undefined || stated.completionTokens !== completionTokens };
}

/** In billionths of a US dollar. The parts are rounded each by itself, and have no fees. */
interface Cost {
  total: number;
  prompt: number;
  completion: number;
}

const NO_COST: Cost = { total: 0, prompt: 0, completion: 0 };

/** Rounded half up once. The prompt includes tokens read from and written to a cache; fees are per call, picture and recording. */
export function costOf(used: ProviderUsage, request: ChatRequest, prices: NanoPrices): Cost {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens = 0, cacheWrite1hTokens = 0 } = used;
  const cached = Math.min(cachedTokens, promptTokens);
  const written = Math.min(cacheWriteTokens, promptTokens - cached);
  const forAnHour = Math.min(cacheWrite1hTokens, written);
  const writes = BigInt(written - forAnHour) * prices.cacheWrite + BigInt(forAnHour) * prices.cacheWrite1h;
  const prompt = BigInt(promptTokens - cached - written) * prices.prompt + BigInt(cached) * prices.cachedPrompt + writes;
  const completion = BigInt(completionTokens) * prices.completion;
  const fees = TOKENS_PER_PRICE * (feesOf(request, prices) + BigInt(used.webSearches ?? optionSearches(request)) * prices.webSearch);
  return { total: rounded(prompt + completion + fees), prompt: rounded(prompt), completion: rounded(completion) };
}

/** Of tokens of the completion alone. */
export function costOfCompletion(tokens: number, prices: NanoPrices): number {
  return rounded(BigInt(tokens) * prices.completion);
}

function feesOf(request: ChatRequest, { request: perCall, image, audio, hasPieces }: NanoPrices): bigint {
  if (!hasPieces) return perCall;
  const { images, recordings } = piecesIn(request);
  return perCall + BigInt(images) * (image ?? 0n) + BigInt(recordings) * (audio ?? 0n);
}

function rounded(perMillion: bigint): number {
  return Number((perMillion + TOKENS_PER_PRICE / 2n) / TOKENS_PER_PRICE);
}

/** With the reasoning. */
function producedTokensOf({ textChars, reasoningChars, refusalChars, hiddenReasoningChars, toolCalls }: Answer): { completion: number; reasoning: number } {
  const chars = textChars + refusalChars + toolCalls.reduce((sum, call) => sum + call.function.name.length + call.function.arguments.length, 0);
  const reasoning = tokensIn(reasoningChars + hiddenReasoningChars);
  return { completion: reasoning + tokensIn(chars), reasoning };
}

function limitOf({ max_completion_tokens: most, max_tokens: tokens }: ChatRequest): number {
  return most ?? tokens ?? Number.POSITIVE_INFINITY;
}

function contentTokensOf(request: ChatRequest): number {
  return tokensIn(deferredIn(request)?.size.contentChars ?? contentCharsOf(request.messages));
}

/** Measured once per request: a stream that goes on has several interim records. */
const sizes = new WeakMap<ChatRequest, PromptSize>();

function promptTokensOf(request: ChatRequest, endpoint: BilledEndpoint = {}): number {
  const size = sizes.get(request) ?? promptSizeOf(request);
  sizes.set(request, size);
  // What a model reads of a file is not known here, and its base64 would be charged many times over.
  return promptTokensAt(endpoint, { ...size, textTokens: size.textTokens - size.fileTokens });
}

function tokensIn(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}
