import type { ChatPlugin, ChatRequest, PluginId } from './chat-request.ts';

/**
 * What becomes of a plugin that a request asks for. `applied`: the router worker has a stage for it; its table is typed by this list, so neither is extended
 * without the other. `ignored`: named in a response header.
 */
const pluginSupport = {
  moderation: 'applied',
  web: 'applied',
  'file-parser': 'applied',
  'response-healing': 'applied',
} as const satisfies Record<PluginId, 'applied' | 'ignored'>;

type Support = typeof pluginSupport;
/** A plugin with a stage. */
export type AppliedPlugin = { [Id in PluginId]: Support[Id] extends 'applied' ? Id : never }[PluginId];

const supportOf = new Map<string, Support[PluginId]>(Object.entries(pluginSupport));

/** Those that have a meaning for vectors, too. */
const OF_VECTORS: ReadonlySet<string> = new Set<AppliedPlugin>(['moderation']);

/** Whether a call for vectors has it applied; a call that names another one goes on without it. */
export function appliesToVectors({ id }: Pick<ChatPlugin, 'id'>): boolean {
  return OF_VECTORS.has(id);
}

/** Null: the request switches the plugin off. Plugins outside the contract are ignored, and those that have nothing to do in this request. */
export function supportOfPlugin(plugin: ChatPlugin, request: Pick<ChatRequest, 'stream' | 'response_format'>): 'applied' | 'ignored' | null {
  if (!isEnabled(plugin)) return null;
  if (plugin.id === 'response-healing' && (request.stream === true || !asksForJson(request.response_format))) return 'ignored';
  return supportOf.get(plugin.id) ?? 'ignored';
}

export function asksForJson(format: ChatRequest['response_format']): boolean {
  return format?.type === 'json_object' || format?.type === 'json_schema';
}

/** Also the plugins whose contract has no `enabled`. */
export function isEnabled(plugin: ChatPlugin): boolean {
  return !('enabled' in plugin) || plugin.enabled !== false;
}
