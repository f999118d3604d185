/** @typedef {{ event: 'process', role: string, index: number, pid: number, url?: string, managementUrl: string }} ProcessEvent */
/** @typedef {{ event: 'exit', role: string, index: number, pid: number, code: number | null, signal: string | null }} ExitEvent */
/** @typedef {{ event: 'ready', natsUrl: string, databaseUrl: string, redisUrl: string, keysFile?: string, routerUrls?: string[], agentUrls?: string[] }} ReadyEvent */

/**
 * What a terminal shows in place of an event's JSON, which is for programs.
 *
 * @param {ProcessEvent | ExitEvent | ReadyEvent} event
 * @returns {string | null} null: nothing, since stderr says it
 */
export function lineOf(event) {
  switch (event.event) {
    case 'process': {
      const at = event.url === undefined ? '' : ` at ${event.url}`;
      return `${event.role}-${event.index} (process ${event.pid}) is ready${at}; health and metrics at ${event.managementUrl}`;
    }
    case 'ready':
      return `stores: ${event.natsUrl} ${event.databaseUrl} ${event.redisUrl}`;
    case 'exit':
      return null;
  }
}
