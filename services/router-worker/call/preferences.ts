import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Exclusions, kept, type Offer } from './offer.ts';

type Preferences = ChatRequest['provider'];

/**
 * Leaves out endpoints that the caller's `provider` object refuses. What the configuration doesn't say of an endpoint counts against it:
 * a caller who asks that nothing be kept is not served by somebody of whom we do not know.
 */
export function filterOut(preferences: Preferences, offers: readonly Offer[], exclusions: Exclusions): Offer[] {
  if (!preferences) return [...offers];
  const { only, ignore, data_collection: collection, zdr, quantizations, max_price: ceiling } = preferences;
  return offers.filter((offer) => {
    const { slug, kind } = offer.provider;
    // The scripted model runs in this process and keeps nothing.
    const keepsNothing = kind === 'scripted';
    return (
      kept(offer, (!only || only.includes(slug)) && !ignore?.includes(slug), 'allowed_providers', exclusions) &&
      kept(offer, collection !== 'deny' || keepsNothing, 'data_policy:training', exclusions) &&
      kept(offer, zdr !== true || keepsNothing, 'data_policy:zdr', exclusions) &&
      kept(offer, !quantizations || quantizations.includes('unknown'), 'quantization', exclusions) &&
      kept(offer, !ceiling || isAffordable(offer, ceiling), 'max_price', exclusions)
    );
  });
}

/** The caller's order first, the configuration's behind it, model by model. Without fallbacks only the named ones stay, or the first. */
export function inOrderOf(preferences: Preferences, offers: readonly Offer[], exclusions: Exclusions): Offer[] {
  const { order, allow_fallbacks: mayFallBack } = preferences ?? {};
  if (!order) return mayFallBack === false ? offers.slice(0, 1) : [...offers];
  const places = new Map(order.map((slug, place) => [slug, place]));
  const models = [...new Set(offers.map(({ model }) => model))];
  const placeOf = ({ model, provider }: Offer) => models.indexOf(model) * (order.length + 1) + (places.get(provider.slug) ?? order.length);
  const eligible = offers.filter((offer) => kept(offer, mayFallBack !== false || places.has(offer.provider.slug), 'allowed_providers', exclusions));
  return eligible.toSorted((left, right) => placeOf(left) - placeOf(right));
}

/** A price that is not known is not known to be low. */
function isAffordable({ endpoint: { prices } }: Offer, ceiling: NonNullable<NonNullable<Preferences>['max_price']>): boolean {
  const within = (price: string | undefined, limit: number | string | undefined) =>
    limit === undefined || (price !== undefined && Number(price) <= Number(limit));
  return within(prices?.prompt, ceiling.prompt) && within(prices?.completion, ceiling.completion) && within(prices?.request ?? '0', ceiling.request);
}
