import type { ChatPlugin, ChatRequest } from '../contracts/router/chat-request.ts';
import { appliesToVectors } from '../contracts/router/plugins.ts';
import type { ModelUse } from './model-kinds.ts';

/**
 * The request with the plugins of its account that it does not name, of those that have a meaning for its use: one that it names, also to switch it off, stays
 * as it is. Twice changes nothing.
 */
export function withDefaultPlugins(request: ChatRequest, defaults: readonly ChatPlugin[], use: ModelUse): ChatRequest {
  if (defaults.length === 0) return request;
  const { plugins = [] } = request;
  const named = new Set(plugins.map(({ id }) => id));
  const added = defaults.filter((plugin) => !named.has(plugin.id) && (use === 'chat' || appliesToVectors(plugin)));
  // Behind those of the request, whose places errors name.
  return added.length === 0 ? request : { ...request, plugins: [...plugins, ...added] };
}
