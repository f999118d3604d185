import type { UsageRecord } from '#bus/messages/usage.ts';
import type { UsageDecision } from '#bus/messages/usage-decision.ts';

/** An endpoint that could serve the call, and what put it where it is. Null: it is not known, or did not matter. */
interface AvailableEndpoint {
  /** `<model id>@<tag>`. */
  endpoint: string;
  /** Whether its answer is the call's. */
  selected: boolean;
  health: string | null;
  /** US dollars per million tokens, as the request was expected to use them. */
  price: number | null;
  /** In the draw among equals. */
  weight: number | null;
  /** Whether it served the conversation last. */
  sticky: boolean;
  /** Whether it misses a preferred throughput or latency. */
  slow: boolean;
}

/** Why a call went where it went: `routing` of GET /generation. Lists are cut off by the worker; each total counts all. */
export interface GenerationRouting {
  /** Names of models in the request; null: not recorded, since nothing was to decide. */
  requested: string[] | null;
  strategy: string;
  sorted_by: string | null;
  /** Of the draw; null: nothing was drawn. */
  seed: string | null;
  /** In the order in which they were to be tried. */
  endpoints: { total: number; available: AvailableEndpoint[] };
  /** By filter. */
  excluded: { filter: string; total: number; endpoints: string[] }[];
}

/** @returns null when no decision is known */
export function routingOf(record: UsageRecord): GenerationRouting | null {
  const { decision } = record;
  if (decision === undefined) return null;
  return decision === null ? trivialRoutingOf(record) : decidedRoutingOf(decision, record);
}

/** One endpoint was eligible, and none was excluded: the rest of the record says which. */
function trivialRoutingOf({ model, provider, attempts }: UsageRecord): GenerationRouting {
  const only = model === null || provider === null ? [] : [availableOf({ endpoint: `${model}@${provider}` }, winnerOf(attempts) !== -1)];
  return { requested: null, strategy: 'single', sorted_by: null, seed: null, endpoints: { total: 1, available: only }, excluded: [] };
}

function decidedRoutingOf(decision: UsageDecision, { generationId, attempts }: UsageRecord): GenerationRouting {
  const { requested, strategy, sortedBy = null, drawn = false, candidates, more = 0, tried, excluded = [] } = decision;
  const selected = tried[winnerOf(attempts)];
  return {
    requested,
    strategy,
    sorted_by: sortedBy,
    seed: drawn ? generationId : null,
    endpoints: {
      total: candidates.length + more,
      available: candidates.map((candidate, at) => availableOf(candidate, at === selected)),
    },
    excluded: excluded.map(({ filter, endpoints, more: unlisted = 0 }) => ({ filter, total: endpoints.length + unlisted, endpoints })),
  };
}

function availableOf(candidate: UsageDecision['candidates'][number], selected: boolean): AvailableEndpoint {
  const { endpoint, health = null, price = null, weight = null, sticky = false, slow = false } = candidate;
  return { endpoint, selected, health, price, weight, sticky, slow };
}

/** Place of the attempt whose answer clients got; -1: none. */
function winnerOf(attempts: UsageRecord['attempts']): number {
  return attempts.findIndex(({ code }) => code === null);
}
