import type { ChatPlugin, PluginId } from './chat-request.ts';

/**
 * What becomes of a plugin that a request asks for. `applied`: the router worker has a stage for it; its table is typed by this list, so neither is extended
 * without the other. `ignored`: named in a response header. `refused`: the request is, because its caller relies on the plugin.
 */
const pluginSupport = {
  moderation: 'refused',
  web: 'ignored',
  'file-parser': 'ignored',
  'response-healing': 'ignored',
} as const satisfies Record<PluginId, 'applied' | 'ignored' | 'refused'>;

type Support = typeof pluginSupport;
/** A plugin with a stage. */
export type AppliedPlugin = { [Id in PluginId]: Support[Id] extends 'applied' ? Id : never }[PluginId];

const supportOf = new Map<string, Support[PluginId]>(Object.entries(pluginSupport));

/** Null: the request switches the plugin off. Plugins outside the contract are ignored. */
export function supportOfPlugin(plugin: ChatPlugin): 'applied' | 'ignored' | 'refused' | null {
  return isEnabled(plugin) ? (supportOf.get(plugin.id) ?? 'ignored') : null;
}

/** Also the plugins whose contract has no `enabled`. */
export function isEnabled(plugin: ChatPlugin): boolean {
  return !('enabled' in plugin) || plugin.enabled !== false;
}
