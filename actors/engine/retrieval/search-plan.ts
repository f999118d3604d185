import type { BundleBody } from '#shared/config/bundle-body.ts';

/** How a turn retrieves documents. */
export interface SearchPlan {
  /** Newest messages that the search gets beside the query. */
  maxMessages: number;
  /** After it the agent replies without results. */
  timeoutMs: number;
}

/** Null: nothing is retrieved. Of the types of a manifest's `search` the vector search is not built. */
export function searchPlanOf(search: BundleBody['manifest']['agent_config']['search']): SearchPlan | null {
  return search?.type === 'external' ? { maxMessages: search.max_messages, timeoutMs: Math.ceil(search.timeout_seconds * 1_000) } : null;
}
