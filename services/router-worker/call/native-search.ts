import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { limitBeyond } from '#shared/contracts/router/search-limits.ts';
import { askedSearch } from '#shared/credit/web-searches.ts';
import type { ModelEndpoint } from './model-endpoint.ts';

/** Whether an endpoint can search the web by itself for this request. */
export function searchesByItself({ endpoint, provider }: Pick<ModelEndpoint, 'endpoint' | 'provider'>, request: ChatRequest): boolean {
  const { webSearch } = provider;
  if (!webSearch || endpoint.native_search === false) return false;
  if (!webSearch.besideTools && (request.tools ?? []).length > 0) return false;
  return limitBeyond(askedSearch(request)?.limits ?? {}, webSearch.takes) === null;
}
