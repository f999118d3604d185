import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { supportOfPlugin } from '#shared/contracts/router/plugins.ts';
import type { PipelineReport } from './stage.ts';

/** A plugin that the router does not know has a name of the caller's. */
const MAX_NAME_CHARS = 64;
const HEALING = 'response-healing';

/** Reports the plugins that a request asks for and that have no effect on it. */
export function reportIgnored(request: ChatRequest, report: PipelineReport): void {
  for (const plugin of request.plugins ?? []) {
    if (supportOfPlugin(plugin, request) !== 'ignored') continue;
    const type = plugin.id === HEALING ? 'response_healing' : 'plugin';
    report({ type, name: plugin.id.slice(0, MAX_NAME_CHARS), summary: 'without effect' });
  }
}
