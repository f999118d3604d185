import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ModelEndpoint } from './model-endpoint.ts';

/** Whether an endpoint can search the web by itself for this request. */
export function searchesByItself({ endpoint, provider }: Pick<ModelEndpoint, 'endpoint' | 'provider'>, { tools = [] }: ChatRequest): boolean {
  const { webSearch } = provider;
  if (!webSearch || endpoint.native_search === false) return false;
  return webSearch.besideTools || tools.length === 0;
}
