import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';

type Preferences = NonNullable<ChatRequest['provider']>;

/** What `max_price` bounds per piece. */
const PRICED_CONTENT = { image: 'image_url', audio: 'input_audio' } as const;

/**
 * Excludes endpoints by the caller's `provider` object. Unknown values count against an endpoint: one of unknown policy doesn't serve a request that forbids
 * retention.
 */
export function filterOut(request: ChatRequest, modelEndpoints: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  const { provider: preferences } = request;
  if (!preferences) return [...modelEndpoints];
  const { only, ignore, data_collection: collection, zdr, enforce_distillable_text: distillable, quantizations } = preferences;
  const { max_price: ceiling, min_throughput: minThroughput, max_latency: maxLatency } = preferences;
  return modelEndpoints.filter((modelEndpoint) => {
    const { model, endpoint, provider } = modelEndpoint;
    const { trains, retains, isDistillable } = provider.dataPolicy;
    const passesFilter = (verdict: boolean, filter: string) => passes(modelEndpoint, verdict, filter, exclusions);
    return (
      passesFilter((!only || only.includes(provider.slug)) && !ignore?.includes(provider.slug), 'allowed_providers') &&
      passesFilter(collection !== 'deny' || !(trains || retains), 'data_policy:training') &&
      passesFilter(zdr !== true || !retains, 'data_policy:zdr') &&
      passesFilter(distillable !== true || isDistillable || model.distillable === true, 'distillable_text') &&
      passesFilter(!quantizations || quantizations.includes(endpoint.quantization ?? 'unknown'), 'quantization') &&
      passesFilter(!ceiling || isAffordable(modelEndpoint, ceiling, request), 'max_price') &&
      passesFilter(!minThroughput || (endpoint.speed?.tokens_per_second ?? 0) >= minThroughput, 'min_throughput') &&
      passesFilter(!maxLatency || (endpoint.speed?.first_token_seconds ?? Number.POSITIVE_INFINITY) <= maxLatency, 'max_latency')
    );
  });
}

/** Unknown prices count as too high. */
function isAffordable({ endpoint: { prices } }: ModelEndpoint, ceiling: NonNullable<Preferences['max_price']>, { messages }: ChatRequest): boolean {
  const within = (price: string | undefined, limit: number | string | undefined) =>
    limit === undefined || (price !== undefined && Number(price) <= Number(limit));
  const hasContent = (type: string) => messages.some(({ content }) => Array.isArray(content) && content.some((item) => item.type === type));
  return (
    within(prices?.prompt, ceiling.prompt) &&
    within(prices?.completion, ceiling.completion) &&
    within(prices?.request ?? '0', ceiling.request) &&
    (!hasContent(PRICED_CONTENT.image) || within(prices?.image, ceiling.image)) &&
    (!hasContent(PRICED_CONTENT.audio) || within(prices?.audio, ceiling.audio))
  );
}
