import type { ChatPlugin, ChatRequest } from '../contracts/router/chat-request.ts';

/** The request with the plugins of its account that it does not name: one that it names, also to switch it off, stays as it is. Twice changes nothing. */
export function withDefaultPlugins(request: ChatRequest, defaults: readonly ChatPlugin[]): ChatRequest {
  if (defaults.length === 0) return request;
  const { plugins = [] } = request;
  const named = new Set(plugins.map(({ id }) => id));
  const added = defaults.filter(({ id }) => !named.has(id));
  // Behind those of the request, whose places errors name.
  return added.length === 0 ? request : { ...request, plugins: [...plugins, ...added] };
}
