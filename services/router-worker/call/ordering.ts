import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Decision, Ordered, RankedEndpoint, Strategy } from './decision.ts';
import { DECISIVE, DefaultOrder, healthNameOf, type OrderInputs, type Rank } from './default-order.ts';
import { expectedPrice } from './expected-price.ts';
import type { EndpointHealth } from './health-view.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';
import { slowFor } from './preferred-speed.ts';
import { qualityRanks } from './quality.ts';

type SortBy = NonNullable<Decision['sortedBy']>;

interface Ordering extends Ordered {
  modelEndpoints: readonly ModelEndpoint[];
}

interface Ranked extends Rank {
  modelEndpoint: ModelEndpoint;
}

/**
 * Orders endpoints by the caller's `order`, else its `sort`, else by a draw weighted by price, healthy ones first; model by model, unless the caller sorts
 * across models. Without fallbacks the providers in `order` remain, or the first endpoint.
 */
export function inOrderOf(eligible: readonly ModelEndpoint[], inputs: OrderInputs, exclusions: Exclusions): Ordering {
  const { order, allow_fallbacks: fallbacks } = inputs.request.provider ?? {};
  if (order && order.length > 0) return inCallersOrder(order, fallbacks !== false, eligible, inputs, exclusions);
  const ordering = inSortedOrder(eligible, inputs);
  return eligible.length > 1 && admitsOne(inputs.request) ? firstOf(ordering, exclusions) : ordering;
}

/** Whether a request admits its first endpoint alone: it forbids fallbacks, and has no order. */
export function admitsOne({ provider }: ChatRequest): boolean {
  return provider?.allow_fallbacks === false && !(provider.order && provider.order.length > 0);
}

/** The named providers, each with its endpoints in the configuration's order; then the others in the default order. */
function inCallersOrder(
  order: readonly string[],
  mayFallBack: boolean,
  eligible: readonly ModelEndpoint[],
  inputs: OrderInputs,
  exclusions: Exclusions,
): Ordering {
  const rankOf = callersRanks(order);
  const remaining = mayFallBack
    ? eligible
    : eligible.filter((modelEndpoint) => passes(modelEndpoint, rankOf(modelEndpoint) < order.length, 'allowed_providers', exclusions));
  const modelRankOf = modelRanks(eligible);
  const defaults = new DefaultOrder({ ...inputs, stickyTo: null });
  const ranked = remaining.map((modelEndpoint): Ranked => {
    const keys = [modelRankOf(modelEndpoint), rankOf(modelEndpoint)];
    if (rankOf(modelEndpoint) < order.length) return { modelEndpoint, keys, listed: unranked(modelEndpoint) };
    const rank = defaults.rankOf(modelEndpoint);
    return { modelEndpoint, keys: [...keys, ...rank.keys], listed: rank.listed };
  });
  return orderingOf(ranked, { strategy: () => 'order', sortedBy: null, seed: defaults.seed });
}

/** The place of the first slug in the list that names the endpoint; behind all for others. */
function callersRanks(order: readonly string[]): (modelEndpoint: ModelEndpoint) => number {
  const rankOfSlug = new Map<string, number>();
  for (const [rank, slug] of order.entries()) if (!rankOfSlug.has(slug)) rankOfSlug.set(slug, rank);
  return ({ slugs }) => slugs.reduce((lowest, slug) => Math.min(lowest, rankOfSlug.get(slug) ?? order.length), order.length);
}

function inSortedOrder(eligible: readonly ModelEndpoint[], inputs: OrderInputs): Ordering {
  const [only] = eligible;
  if (only !== undefined && eligible.length === 1) {
    return { modelEndpoints: eligible, strategy: 'single', sortedBy: null, seed: null, candidates: [unranked(only)] };
  }
  const { provider, route } = inputs.request;
  const { sort } = provider ?? {};
  const by = typeof sort === 'string' ? sort : (sort?.by ?? null);
  // `route` is the legacy form.
  const partition = (typeof sort === 'string' ? null : sort?.partition) ?? (route === 'sort' ? 'none' : 'model');
  const modelRankOf = modelRanks(eligible);
  if (by !== null) return sortedBy(by, eligible, partition === 'model' ? modelRankOf : () => 0, inputs);
  const defaults = new DefaultOrder(inputs);
  const ranked = eligible.map((modelEndpoint): Ranked => {
    const { keys, listed } = defaults.rankOf(modelEndpoint);
    const rank = modelRankOf(modelEndpoint);
    // Across models health and speed count before the order of models; prices of different models are not compared.
    return { modelEndpoint, keys: partition === 'model' ? [rank, ...keys] : [...keys.slice(0, DECISIVE), rank, ...keys.slice(DECISIVE)], listed };
  });
  return orderingOf(ranked, { strategy: defaults.strategyOf, sortedBy: null, seed: defaults.seed });
}

/** Nothing is drawn: health demotes only endpoints that would fail. */
function sortedBy(by: SortBy, eligible: readonly ModelEndpoint[], modelRankOf: (modelEndpoint: ModelEndpoint) => number, inputs: OrderInputs): Ordering {
  const mix = by === 'price' ? inputs.mix() : null;
  const amountsOf = amountsFor(by, inputs.request);
  const misses = slowFor(inputs.request.provider);
  const ranked = eligible.map((modelEndpoint): Ranked => {
    const health = inputs.health.of(modelEndpoint);
    const isSlow = misses(health);
    const price = mix === null || modelEndpoint.prices === null ? null : expectedPrice(modelEndpoint.prices, mix);
    const keys = [modelRankOf(modelEndpoint), health.isOpen ? 1 : 0, isSlow ? 1 : 0, ...amountsOf(modelEndpoint, health, price)];
    return { modelEndpoint, keys, listed: { endpoint: modelEndpoint.id, health: healthNameOf(health), price, weight: null, ...(isSlow && { slow: true }) } };
  });
  return orderingOf(ranked, { strategy: () => 'sort', sortedBy: by, seed: null });
}

type AmountsOf = (modelEndpoint: ModelEndpoint, health: EndpointHealth, price: number | null) => number[];

function amountsFor(by: SortBy, request: ChatRequest): AmountsOf {
  if (by !== 'exacto') return (_, health, price) => [amountOf(by, health, price)];
  const ranks = qualityRanks(request);
  return (modelEndpoint) => ranks.map((rankOf) => rankOf(modelEndpoint));
}

/** Lowest is best, unknown last. */
function amountOf(by: Exclude<SortBy, 'exacto'>, { tokensPerSecond, firstTokenSeconds }: EndpointHealth, price: number | null): number {
  switch (by) {
    case 'price':
      return price ?? Number.POSITIVE_INFINITY;
    case 'throughput':
      return -(tokensPerSecond?.p50 ?? Number.NEGATIVE_INFINITY);
    case 'latency':
      return firstTokenSeconds?.p50 ?? Number.POSITIVE_INFINITY;
  }
}

function modelRanks(modelEndpoints: readonly ModelEndpoint[]): (modelEndpoint: ModelEndpoint) => number {
  const ranks = new Map<unknown, number>();
  for (const { model } of modelEndpoints) if (!ranks.has(model)) ranks.set(model, ranks.size);
  return ({ model }) => ranks.get(model) ?? ranks.size;
}

function unranked({ id }: ModelEndpoint): RankedEndpoint {
  return { endpoint: id, health: null, price: null, weight: null };
}

/** @param why the strategy by the first candidate */
function orderingOf(ranked: Ranked[], why: { strategy(first: RankedEndpoint): Strategy; sortedBy: SortBy | null; seed: string | null }): Ordering {
  ranked.sort(({ keys: left }, { keys: right }) => compared(left, right));
  const candidates = ranked.map(({ listed }) => listed);
  const [first] = candidates;
  return {
    modelEndpoints: ranked.map(({ modelEndpoint }) => modelEndpoint),
    strategy: first === undefined ? 'single' : why.strategy(first),
    sortedBy: why.sortedBy,
    seed: why.seed,
    candidates,
  };
}

function compared(left: readonly number[], right: readonly number[]): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const [one, other] = [left[at] ?? 0, right[at] ?? 0];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The others are listed as excluded: they are not tried. */
function firstOf(ordering: Ordering, exclusions: Exclusions): Ordering {
  for (const other of ordering.modelEndpoints.slice(1)) passes(other, false, 'allow_fallbacks', exclusions);
  return { ...ordering, modelEndpoints: ordering.modelEndpoints.slice(0, 1), candidates: ordering.candidates.slice(0, 1) };
}
