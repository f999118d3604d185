import type { EndpointConfig } from '../config/router-config.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import type { NanoPrices } from './nano-prices.ts';

/** Values of `service_tier` that ask for no tier of its own: the plain one, and what the operator's account at the vendor is set to. */
const PLAIN = 'default';
const AS_SET_UP = 'auto';

type Tiers = NonNullable<NonNullable<EndpointConfig['prices']>['tiers']>;

/** The tier that a request asks a provider for; its own options overrule the request's field. Undefined: none. */
export function askedTier({ service_tier: tier, provider_options: options }: Pick<ChatRequest, 'service_tier' | 'provider_options'>, slug: string): unknown {
  const own = options && Object.hasOwn(options, slug) ? options[slug]?.service_tier : undefined;
  return own ?? tier ?? undefined;
}

/** Whether what a tier costs is not known there. */
export function isUnpriced(tier: unknown, prices: EndpointConfig['prices']): boolean {
  return tier !== undefined && tier !== PLAIN && tier !== AS_SET_UP && tierPrices(tier, prices) === undefined;
}

/** Undefined: it has no prices of its own. */
export function tierPrices(tier: unknown, prices: EndpointConfig['prices']): Tiers[keyof Tiers] {
  const tiers = prices?.tiers;
  return tiers !== undefined && typeof tier === 'string' && Object.hasOwn(tiers, tier) ? tiers[tier as keyof Tiers] : undefined;
}

/**
 * Prices of a whole answer: of the tier that it states, or else of the one asked for. A cheaper tier counts where the answer states it alone, as upstreams may serve
 * such a request at the plain one.
 * @param stated by the answer; null: none
 */
export function pricesOfTier(prices: NanoPrices, asked: unknown, stated: string | null): NanoPrices {
  const { tiers } = prices;
  if (tiers === null) return prices;
  if (stated !== null && stated !== AS_SET_UP) return tiers.get(stated) ?? prices;
  return asked === 'flex' || typeof asked !== 'string' ? prices : (tiers.get(asked) ?? prices);
}

/**
 * The dearest prices of tokens that a request may get at an endpoint. Without a tier, and with one that is not sent, the vendor's account decides.
 * @param slug of its provider
 */
export function dearestTier(prices: NanoPrices, request: ChatRequest, { provider: slug, supported_parameters: supported }: EndpointConfig): NanoPrices {
  const { tiers } = prices;
  if (tiers === null) return prices;
  const isSent = supported === undefined || supported.includes('service_tier');
  // The options count at some kinds of providers alone.
  const asked = [request.service_tier ?? undefined, askedTier(request, slug)];
  const isSure = isSent && asked.every((tier) => tier === PLAIN || (tier === 'flex' && tiers.has(tier)));
  const possible = isSure ? asked.flatMap((tier) => tiers.get(tier as string) ?? []) : [...tiers.values()];
  return possible.reduce(dearer, prices);
}

function dearer(left: NanoPrices, right: NanoPrices): NanoPrices {
  const most = (name: 'prompt' | 'completion' | 'cachedPrompt' | 'cacheWrite' | 'cacheWrite1h') => (left[name] > right[name] ? left[name] : right[name]);
  return {
    ...left,
    prompt: most('prompt'),
    completion: most('completion'),
    cachedPrompt: most('cachedPrompt'),
    cacheWrite: most('cacheWrite'),
    cacheWrite1h: most('cacheWrite1h'),
  };
}
