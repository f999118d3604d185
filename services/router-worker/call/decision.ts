import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Exclusions } from './model-endpoint.ts';

/** Of candidates, and of endpoints per filter: a decision is part of a record. */
const MAX_LISTED = 64;

/**
 * What put the first candidate there: `single`: no other was eligible; `order` and `sort`: the request; `sticky`: it served the conversation last; `weighted`:
 * the draw by price; `configured`: the configuration's order, since no price is known or the model demands it.
 */
export type Strategy = 'single' | 'order' | 'sort' | 'sticky' | 'weighted' | 'configured';

/** A candidate, and what put it where it is. */
export interface RankedEndpoint {
  /** `<model id>@<tag>`. */
  endpoint: string;
  /** Null: it did not matter. */
  health: 'healthy' | 'unhealthy' | 'open' | null;
  /** USD per million tokens in the request's estimated mix, its fees included. Null: not known, or it did not matter. */
  price: number | null;
  /** In the draw among equals: endpoints of one model, equally healthy, all free or all priced. Null: it was not drawn. */
  weight: number | null;
  /** Whether it served the conversation last. Absent: no. */
  sticky?: true;
  /** Whether it misses a preferred throughput or latency. Absent: no. */
  slow?: true;
}

/** Why a call goes where it goes. Plain JSON. */
export interface Decision {
  /** Names of models in the request, in its order; empty: it named none. */
  requested: readonly string[];
  strategy: Strategy;
  sortedBy: 'price' | 'throughput' | 'latency' | 'exacto' | null;
  /** Of the draw, which can be repeated with it; null: nothing was drawn. */
  seed: string | null;
  /** In the order in which they are tried. */
  candidates: readonly RankedEndpoint[];
  /** By filter, in the order of the filters. */
  excluded: readonly Excluded[];
  /** How many more candidates there were than are listed. Absent: none. */
  more?: number;
}

interface Excluded {
  filter: string;
  endpoints: readonly string[];
  /** How many more it excluded than are listed. Absent: none. */
  more?: number;
}

/** How candidates were ordered. */
export type Ordered = Pick<Decision, 'strategy' | 'sortedBy' | 'seed' | 'candidates'>;

export function decisionOf(requested: readonly string[], { strategy, sortedBy, seed, candidates }: Ordered, exclusions: Exclusions): Decision {
  const excluded = exclusions.size === 0 ? [] : [...exclusions].map(([filter, endpoints]) => ({ filter, endpoints: listed(endpoints), ...moreOf(endpoints) }));
  return { requested, strategy, sortedBy, seed, candidates: listed(candidates), excluded, ...moreOf(candidates) };
}

function listed<Item>(all: readonly Item[]): readonly Item[] {
  return all.length > MAX_LISTED ? all.slice(0, MAX_LISTED) : all;
}

function moreOf(all: readonly unknown[]): { more?: number } {
  return all.length > MAX_LISTED ? { more: all.length - MAX_LISTED } : {};
}

/** For the operator: no change of the request helps. */
const UNPRICED =
  "The API key has a credit limit, and the model has no prices: they are set in the router's configuration (prices of its endpoints, or ROUTER_PRICES of npm start)";

/** `router.no_provider`: of a decision without candidates. */
export function noProvider({ excluded }: Decision): SwitchyardError {
  const isUnpriced = excluded.length === 1 && excluded[0]?.filter === 'unpriced';
  return new SwitchyardError('router.no_provider', isUnpriced ? UNPRICED : 'No provider meets the requirements of this request', {
    details: { excluded_by: excluded },
  });
}
