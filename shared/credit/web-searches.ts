import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { isEnabled } from '../contracts/router/plugins.ts';
import { limitsOf, type SearchLimits } from '../contracts/router/search-limits.ts';

/** What requests without `max_results` get. */
const DEFAULT_RESULTS = 5;
/** Of the text of one result. */
export const MAX_RESULT_CHARS = 2_000;
/** An endpoint that searches by itself is asked for at most so many searches. */
export const MAX_NATIVE_SEARCHES = 5;

/** Of the texts of one result, with its address and title, and of what an endpoint reads in one search of its own: estimates. */
const TOKENS_PER_RESULT = 700;
const TOKENS_PER_NATIVE_SEARCH = 8_000;

/** The web search that a request asks for. */
export interface AskedSearch {
  /** Place of the plugin in the request. */
  at: number;
  /** `native`, or the name of an engine; null: not stated. */
  engine: string | null;
  maxResults: number;
  /** In place of ours; null: none. */
  prompt: string | null;
  limits: SearchLimits;
}

/** Null: none. */
export function askedSearch({ plugins = [] }: Pick<ChatRequest, 'plugins'>): AskedSearch | null {
  for (const [at, plugin] of plugins.entries()) {
    if (plugin.id !== 'web' || !isEnabled(plugin)) continue;
    const { engine = null, max_results: maxResults = DEFAULT_RESULTS, search_prompt: prompt = null } = plugin as WebPlugin;
    return { at, engine, maxResults, prompt, limits: limitsOf(plugin as WebPlugin) };
  }
  return null;
}

type WebPlugin = Parameters<typeof limitsOf>[0] & {
  engine?: string;
  max_results?: number;
  search_prompt?: string;
};

/**
 * Searches of an endpoint that `web_search_options` asks for itself: vendors charge for one per call, and state none in usage or answers.
 * @param request as the endpoint gets it
 */
export function optionSearches({ web_search_options: options }: ChatRequest): number {
  return options === undefined || options === null ? 0 : 1;
}

/** The most that a search of the web adds to a prompt, in tokens, by an estimate. */
export function searchTokens(asked: AskedSearch, isNative: boolean): number {
  return isNative ? MAX_NATIVE_SEARCHES * TOKENS_PER_NATIVE_SEARCH : asked.maxResults * TOKENS_PER_RESULT;
}
