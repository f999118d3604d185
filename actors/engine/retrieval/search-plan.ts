import type { BundleBody } from '#shared/config/bundle-body.ts';
import { promptOf } from '../prompt-of.ts';

/** Of a vector search, its embedding included: the manifest states none. */
const VECTOR_TIMEOUT_MS = 10_000;

/** How a turn retrieves documents. */
export interface SearchPlan {
  /** A model makes the query from the conversation, with further instructions, if any. Null: the customer's newest message is the query. */
  rewrite: { instructions: string | null } | null;
  /** Newest messages that the search gets beside the query. */
  maxMessages: number;
  /** After it the agent replies without results. */
  timeoutMs: number;
}

/** Null: nothing is retrieved. */
export function searchPlanOf(search: BundleBody['manifest']['agent_config']['search'], documents: BundleBody['documents']): SearchPlan | null {
  if (search === null) return null;
  if (search.type === 'external') return { rewrite: null, maxMessages: search.max_messages, timeoutMs: Math.ceil(search.timeout_seconds * 1_000) };
  return { rewrite: { instructions: search.prompt === null ? null : promptOf(documents, search.prompt) }, maxMessages: 0, timeoutMs: VECTOR_TIMEOUT_MS };
}
