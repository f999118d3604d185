import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';

type Preferences = NonNullable<ChatRequest['provider']>;
type SortBy = 'price' | 'throughput' | 'latency';

/**
 * Orders endpoints by the caller's `order`, else its `sort`, else the configuration; model by model, unless the caller sorts across models. Without fallbacks
 * the providers in `order` remain, or the first endpoint.
 */
export function inOrderOf(
  { provider, route, messages }: Pick<ChatRequest, 'provider' | 'route' | 'messages'>,
  modelEndpoints: readonly ModelEndpoint[],
  exclusions: Exclusions,
): ModelEndpoint[] {
  const preferences = provider ?? {};
  const { order, allow_fallbacks: mayFallBack } = preferences;
  if (order && order.length > 0) return inCallersOrder(order, mayFallBack !== false, modelEndpoints, exclusions);
  const sorted = inSortedOrder(preferences, route ?? 'fallback', messages, modelEndpoints);
  return mayFallBack === false ? sorted.slice(0, 1) : sorted;
}

/** The named providers, then the others as configured. */
function inCallersOrder(order: readonly string[], mayFallBack: boolean, modelEndpoints: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  const rankOf = ({ provider }: ModelEndpoint) => (order.includes(provider.slug) ? order.indexOf(provider.slug) : order.length);
  const eligible = modelEndpoints.filter((modelEndpoint) =>
    passes(modelEndpoint, mayFallBack || order.includes(modelEndpoint.provider.slug), 'allowed_providers', exclusions),
  );
  return sortedBy(eligible, [modelRanks(modelEndpoints), rankOf]);
}

/** Endpoints that miss a preferred speed come last. Without a sort those that read the reasoning sent back come first. Ties keep the configuration's order. */
function inSortedOrder(
  preferences: Preferences,
  route: 'fallback' | 'sort',
  messages: ChatRequest['messages'],
  modelEndpoints: readonly ModelEndpoint[],
): ModelEndpoint[] {
  if (modelEndpoints.length < 2) return [...modelEndpoints];
  const { sort } = preferences;
  const by = typeof sort === 'string' ? sort : (sort?.by ?? null);
  // `route` is the legacy form.
  const partition = (typeof sort === 'string' ? null : sort?.partition) ?? (route === 'sort' ? 'none' : 'model');
  const missing = (modelEndpoint: ModelEndpoint) => (missesPreferredSpeed(modelEndpoint, preferences) ? 1 : 0);
  const amount = by === null ? [readsReasoningOf(messages)] : [(modelEndpoint: ModelEndpoint) => amountOf(modelEndpoint, by)];
  return sortedBy(modelEndpoints, [...(partition === 'model' ? [modelRanks(modelEndpoints)] : []), missing, ...amount]);
}

/** Reasoning is lost at an endpoint of another dialect. */
function readsReasoningOf(messages: ChatRequest['messages']): (modelEndpoint: ModelEndpoint) => number {
  const formats = reasoningFormats(messages);
  return ({ provider: { reasoningFormat: format } }) => (format !== null && formats.has(format) ? 0 : 1);
}

function reasoningFormats(messages: ChatRequest['messages']): ReadonlySet<unknown> {
  const formats = new Set<unknown>();
  for (const message of messages) {
    const details = message.role === 'assistant' ? message.reasoning_details : null;
    for (const detail of Array.isArray(details) ? details : []) formats.add(detail?.format);
  }
  return formats;
}

/** Sort key: lowest is best, unknown last. */
function amountOf({ endpoint: { prices, speed } }: ModelEndpoint, by: SortBy): number {
  switch (by) {
    case 'price':
      return prices === undefined ? Number.POSITIVE_INFINITY : Number(prices.prompt) + Number(prices.completion);
    case 'throughput':
      return -(speed?.tokens_per_second ?? Number.NEGATIVE_INFINITY);
    case 'latency':
      return speed?.first_token_seconds ?? Number.POSITIVE_INFINITY;
  }
}

/** Only medians are known; one that misses a stricter percentile's cutoff surely misses that percentile. */
function missesPreferredSpeed({ endpoint: { speed } }: ModelEndpoint, preferences: Preferences): boolean {
  const { preferred_min_throughput: minThroughput, preferred_max_latency: maxLatency } = preferences;
  return (
    cutoffs(minThroughput).some((cutoff) => (speed?.tokens_per_second ?? 0) < cutoff) ||
    cutoffs(maxLatency).some((cutoff) => (speed?.first_token_seconds ?? Number.POSITIVE_INFINITY) > cutoff)
  );
}

function cutoffs(given: Preferences['preferred_max_latency']): number[] {
  if (given === null || given === undefined) return [];
  return typeof given === 'number' ? [given] : Object.values(given);
}

function modelRanks(modelEndpoints: readonly ModelEndpoint[]): (modelEndpoint: ModelEndpoint) => number {
  const models = [...new Set(modelEndpoints.map(({ model }) => model))];
  return ({ model }) => models.indexOf(model);
}

function sortedBy(modelEndpoints: readonly ModelEndpoint[], amounts: readonly ((modelEndpoint: ModelEndpoint) => number)[]): ModelEndpoint[] {
  return modelEndpoints.toSorted((left, right) => {
    for (const amount of amounts) {
      const [one, other] = [amount(left), amount(right)];
      if (one !== other) return one < other ? -1 : 1;
    }
    return 0;
  });
}
