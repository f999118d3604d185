import type { EndpointConfig, ModelConfig } from '../config/router-config.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import type { EmbeddingCall } from '../contracts/router/embedding-call.ts';
import { nanoPricesOf, TOKENS_PER_PRICE } from './nano-prices.ts';
import { MAX_LIMIT_USD, nanoOfUsd } from './nano-usd.ts';
import { type PricedOcr, type WorstParsing, worstParsingOf } from './parsed-files.ts';
import { type PromptSize, promptSizeOf, promptTokensAt, TOKENS_PER_IMAGE } from './prompt-size.ts';
import { dearestTier } from './service-tiers.ts';
import { type AskedSearch, askedSearch, MAX_NATIVE_SEARCHES, optionSearches, searchTokens } from './web-searches.ts';

/** Sums stay exact; more than any limit is refused anyway. */
const MOST_NANO = BigInt(nanoOfUsd(MAX_LIMIT_USD)) + 1n;
const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens'];

/** What a call may cost at most. */
export interface WorstCase {
  /** Billionths of a US dollar; 0 when no endpoint has prices, since none then serves the call. */
  amountNano: number;
  /** Of prompt and completion. */
  tokens: number;
  /** Ceiling on completion tokens to be sent with the call; null: the request has one of its own, or has no completion. */
  maxTokens: number | null;
}

interface Asked {
  request: ChatRequest;
  /** Absent: a chat. */
  embedding?: EmbeddingCall | null | undefined;
  /** Those that may serve it: named by the request, or the default. */
  models: readonly ModelConfig[];
  /** Of a request that has no limit. */
  defaultCompletionTokens: number;
  /** The call's own ceiling; null: none. */
  maxTokens: number | null;
  /** Engine of the router's own searches; absent: there is none. */
  searchEngine?: { price: string } | undefined;
  /** Engine of the router's reading of files; absent: there is none. */
  ocr?: PricedOcr | undefined;
}

/** The most that a call can cost at the dearest endpoint of its models, by an estimate of its prompt. Only one attempt of a call is billed. */
export function worstCaseOf({ request, embedding, models, defaultCompletionTokens, maxTokens, searchEngine, ocr }: Asked): WorstCase {
  if (embedding) return worstOfVectors(request, embedding, models);
  const size = promptSizeOf(request);
  const search = askedSearch(request);
  const parsing = worstParsingOf(request, ocr);
  const given = [request.max_completion_tokens ?? request.max_tokens ?? null, maxTokens].filter((limit) => limit !== null);
  // A budget of reasoning is beside the tokens of the answer.
  const ceiling = defaultCompletionTokens + (request.reasoning?.max_tokens ?? 0);
  const asked = given.length === 0 ? ceiling : Math.min(...given);
  let most = 0n;
  let tokens = 0;
  for (const endpoint of models.flatMap((model) => model.endpoints)) {
    const at = worstAt(endpoint, { request, size, asked, parsing, search: search === null ? null : { ...search, enginePrice: searchEngine?.price ?? '0' } });
    if (at.nano > most) most = at.nano;
    tokens = Math.max(tokens, at.tokens);
  }
  return { amountNano: Number(most < MOST_NANO ? most : MOST_NANO), tokens, maxTokens: given.length === 0 ? ceiling : maxTokens };
}

/** Nothing is completed, and the context bounds each input by itself. */
function worstOfVectors(request: ChatRequest, { tokens: ids }: EmbeddingCall, models: readonly ModelConfig[]): WorstCase {
  const size = promptSizeOf(request);
  const unbounded = { ...size, textTokens: size.textTokens + (ids ?? []).reduce((sum, input) => sum + input.length, 0) };
  const worst = models.flatMap(({ endpoints }) =>
    endpoints.map((endpoint) => worstAt({ ...endpoint, context_length: undefined, max_completion_tokens: 0 }, { request, size: unbounded, asked: 0 })),
  );
  const most = worst.reduce((dearest, { nano }) => (nano > dearest ? nano : dearest), 0n);
  const tokens = worst.reduce((largest, at) => Math.max(largest, at.tokens), 0);
  return { amountNano: Number(most < MOST_NANO ? most : MOST_NANO), tokens, maxTokens: null };
}

interface WorstAsked {
  request: ChatRequest;
  size: PromptSize;
  asked: number;
  parsing?: WorstParsing;
  search?: (AskedSearch & { enginePrice: string }) | null;
}

function worstAt(endpoint: EndpointConfig, { request, size, asked, parsing, search = null }: WorstAsked): { nano: bigint; tokens: number } {
  const prices = endpoint.prices === undefined ? null : dearestTier(nanoPricesOf(endpoint.prices), request, endpoint);
  const completionTokens = completionTokensAt(endpoint, asked);
  // An endpoint with a price of searches makes them by itself, or gets what the engine has found.
  const isNative = endpoint.prices?.web_search !== undefined;
  const found = (search === null ? 0 : searchTokens(search, isNative)) + (parsing?.tokens ?? 0);
  const pictures = parsing?.pictures ?? 0;
  const sized =
    found + pictures === 0
      ? size
      : { ...size, textTokens: size.textTokens + found, images: size.images + pictures, imageTokens: size.imageTokens + pictures * TOKENS_PER_IMAGE };
  const promptTokens = promptTokensAt(endpoint, sized);
  const tokens = promptTokens + completionTokens;
  if (prices === null) return { nano: 0n, tokens };
  const prompt = dearest(prices.prompt, prices.cacheWrite, prices.cacheWrite1h);
  const perToken = BigInt(promptTokens) * prompt + BigInt(completionTokens) * prices.completion;
  const fees = prices.request + BigInt(sized.images) * (prices.image ?? 0n) + BigInt(size.recordings) * (prices.audio ?? 0n);
  const searches = search === null ? 0n : dearest(BigInt(nanoOfUsd(Number(search.enginePrice))), BigInt(MAX_NATIVE_SEARCHES) * prices.webSearch);
  const { provider: slug, supported_parameters: supported } = endpoint;
  const isTold = supported === undefined || supported.includes('web_search_options');
  const own = isTold ? BigInt(optionSearches({ ...request, ...request.provider_options?.[slug] })) * prices.webSearch : 0n;
  // Rounded up.
  return { nano: (perToken + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE + fees + searches + own + (parsing?.costNano ?? 0n), tokens };
}

function dearest(...prices: readonly bigint[]): bigint {
  return prices.reduce((most, price) => (price > most ? price : most), 0n);
}

/** An endpoint that takes no limit may answer as long as it can. */
function completionTokensAt({ max_completion_tokens: most, context_length: context, supported_parameters: supported }: EndpointConfig, asked: number): number {
  const takesLimit = supported === undefined || TOKEN_LIMITS.some((name) => supported.includes(name));
  return takesLimit ? Math.min(asked, most ?? asked, context ?? asked) : (most ?? context ?? asked);
}
