import type { BundleBody } from '#shared/config/bundle-body.ts';

/** Of a search in a table of vectors, from the question to a model to the documents; the manifest has no field for it. */
const VECTOR_SEARCH_TIMEOUT_MS = 10_000;

/** An effect of a search, by its request: a query made by a model, its vector, and the documents. */
export type SearchStage = 'rewrite-query' | 'embed' | 'search';

/** How a turn retrieves documents. */
export interface SearchPlan {
  /** With which it begins; the others follow. */
  first: SearchStage;
  /** Newest messages that the search gets beside the query. */
  maxMessages: number;
  /** After it the agent replies without results. */
  timeoutMs: number;
}

/** Null: nothing is retrieved. */
export function searchPlanOf(search: BundleBody['manifest']['agent_config']['search']): SearchPlan | null {
  switch (search?.type) {
    case 'external':
      return { first: 'search', maxMessages: search.max_messages, timeoutMs: Math.ceil(search.timeout_seconds * 1_000) };
    case 'pgvector':
      return { first: 'rewrite-query', maxMessages: 0, timeoutMs: VECTOR_SEARCH_TIMEOUT_MS };
    default:
      return null;
  }
}
