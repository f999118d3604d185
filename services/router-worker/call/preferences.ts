import type { AccountRules } from '#shared/config/account-rules.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { askedTier, tierPrices } from '#shared/credit/service-tiers.ts';
import { askedSearch } from '#shared/credit/web-searches.ts';
import { messagesBeyondText } from '#shared/prompts/deferred-messages.ts';
import type { HealthView } from './health-view.ts';
import { type Exclusions, type ModelEndpoint, type Prices, passes } from './model-endpoint.ts';

type Preferences = NonNullable<ChatRequest['provider']>;
type Ceiling = NonNullable<Preferences['max_price']>;

const NO_PREFERENCES: Preferences = {};
/** What `max_price` bounds per piece. */
const PRICED_CONTENT = { image: 'image_url', audio: 'input_audio' } as const;

/**
 * Excludes endpoints by the rules of the account and by the caller's `provider` object, of which each narrows the other. Unknown values count against an
 * endpoint: one of unknown policy doesn't serve a request that forbids retention.
 */
export function filterOut(
  request: ChatRequest,
  modelEndpoints: readonly ModelEndpoint[],
  rules: AccountRules,
  exclusions: Exclusions,
): readonly ModelEndpoint[] {
  if (!request.provider && isEmpty(rules)) return modelEndpoints;
  const {
    only,
    ignore,
    data_collection: collection,
    zdr,
    enforce_distillable_text: distillable,
    quantizations,
    max_price: ceiling,
  } = request.provider ?? NO_PREFERENCES;
  const allowed = only?.length ? [...rules.allowed, only] : rules.allowed;
  const ignored = ignore ? [...rules.ignored, ...ignore] : rules.ignored;
  const deniesCollection = rules.deniesCollection || collection === 'deny';
  const requiresZdr = rules.requiresZdr || zdr === true;
  const isAffordable = ceiling ? withinPrices(ceiling, request) : null;
  return modelEndpoints.filter((modelEndpoint) => {
    const { model, endpoint, provider } = modelEndpoint;
    const { trains, retains, isDistillable } = provider.dataPolicy;
    const passesFilter = (verdict: boolean, filter: string) => passes(modelEndpoint, verdict, filter, exclusions);
    return (
      passesFilter(
        allowed.every((slugs) => isNamedIn(slugs, modelEndpoint)),
        'allowed_providers',
      ) &&
      passesFilter(!isNamedIn(ignored, modelEndpoint), 'allowed_providers') &&
      passesFilter(!deniesCollection || !(trains || retains), 'data_policy:training') &&
      passesFilter(!requiresZdr || !retains, 'data_policy:zdr') &&
      passesFilter(distillable !== true || isDistillable || model.distillable === true, 'distillable_text') &&
      passesFilter(!quantizations?.length || quantizations.includes(endpoint.quantization ?? 'unknown'), 'quantization') &&
      passesFilter(isAffordable === null || isAffordable(modelEndpoint), 'max_price')
    );
  });
}

function isEmpty({ allowed, ignored, deniesCollection, requiresZdr }: AccountRules): boolean {
  return allowed.length === 0 && ignored.length === 0 && !deniesCollection && !requiresZdr;
}

/** A base slug names all variants and regions. */
function isNamedIn(list: readonly string[], { slugs }: ModelEndpoint): boolean {
  return list.length > 0 && slugs.some((slug) => list.includes(slug));
}

/** Excludes endpoints that are not known to be as quick, by the median, as the caller demands. */
export function quickEnough({ provider }: ChatRequest, all: readonly ModelEndpoint[], health: HealthView, exclusions: Exclusions): readonly ModelEndpoint[] {
  const { min_throughput: minThroughput, max_latency } = provider ?? NO_PREFERENCES;
  const maxLatency = max_latency ?? Number.POSITIVE_INFINITY;
  if (!minThroughput && maxLatency === Number.POSITIVE_INFINITY) return all;
  return all.filter((modelEndpoint) => {
    const { tokensPerSecond, firstTokenSeconds } = health.of(modelEndpoint);
    return (
      passes(modelEndpoint, !minThroughput || (tokensPerSecond?.p50 ?? 0) >= minThroughput, 'min_throughput', exclusions) &&
      passes(modelEndpoint, (firstTokenSeconds?.p50 ?? Number.POSITIVE_INFINITY) <= maxLatency, 'max_latency', exclusions)
    );
  });
}

/** Unknown prices count as too high. Prices of pieces count for requests that have such pieces. */
function withinPrices(ceiling: Ceiling, request: ChatRequest): (modelEndpoint: ModelEndpoint) => boolean {
  const messages = messagesBeyondText(request);
  const hasContent = (type: string) => messages.some(({ content }) => Array.isArray(content) && content.some((item) => item.type === type));
  const search = searchIn(request);
  const needed = {
    prompt: true,
    completion: true,
    request: true,
    image: hasContent(PRICED_CONTENT.image),
    audio: hasContent(PRICED_CONTENT.audio),
    web_search: search !== 'none',
  };
  const limitOf = (name: keyof typeof needed) => (needed[name] && ceiling[name] !== undefined ? Number(ceiling[name]) : Number.POSITIVE_INFINITY);
  const most = { prompt: limitOf('prompt'), completion: limitOf('completion'), request: limitOf('request'), image: limitOf('image'), audio: limitOf('audio') };
  const mostPerSearch = limitOf('web_search');
  const isUnlimited = [...Object.values(most), mostPerSearch].every((limit) => limit === Number.POSITIVE_INFINITY);
  const within = (price: number | null, limit: number) => limit === Number.POSITIVE_INFINITY || (price !== null && price <= limit);
  const isWithin = (prices: Prices) =>
    within(prices.prompt, most.prompt) &&
    within(prices.completion, most.completion) &&
    within(prices.request, most.request) &&
    within(prices.image, most.image) &&
    within(prices.audio, most.audio) &&
    within(prices.webSearch ?? (search === 'any' ? 0 : null), mostPerSearch);
  return ({ prices, endpoint }) => isUnlimited || (prices !== null && isWithin(atTier(prices, request, endpoint)));
}

/** With the prices of the tier that the request asks for, where it has some. */
function atTier(prices: Prices, request: ChatRequest, { provider, prices: configured }: EndpointConfig): Prices {
  const own = tierPrices(askedTier(request, provider), configured);
  return own === undefined ? prices : { ...prices, prompt: Number(own.prompt), completion: Number(own.completion) };
}

/**
 * Which searches a request asks for that its endpoint may make. `native`: no other engine may; `any`: an endpoint without a price for them leaves them to
 * another engine.
 */
function searchIn({ plugins = [], web_search_options: options }: ChatRequest): 'none' | 'native' | 'any' {
  const search = askedSearch({ plugins });
  if (search === null) return options === undefined || options === null ? 'none' : 'native';
  return search.engine === null ? 'any' : search.engine === 'native' ? 'native' : 'none';
}
