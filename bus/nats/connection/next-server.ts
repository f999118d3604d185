import type { Server } from '@nats-io/transport-node';

/**
 * The server to dial next; null: the library's choice. The library begins with the one that was lost, and waits there for the time of an attempt: a paused
 * server accepts connections and never answers.
 */
export function leastRecentlyDialled(pool: readonly Server[]): Server | null {
  return pool.reduce<Server | null>((first, server) => (first === null || server.lastConnect < first.lastConnect ? server : first), null);
}
