/** How a silent end of a connection is noticed: it is closed when a ping is due and `max` others are unanswered, after `max` to `max + 1` intervals. */
export interface Pings {
  everyMs: number;
  max: number;
}

/** There is no other server to go to: 10 to 15 s. */
export const pings: Pings = { everyMs: 5_000, max: 2 };
/** The other servers go on: 3 to 4 s, in which nothing reaches the clients of a silent one. An election takes 4 s and longer. */
export const clusterPings: Pings = { everyMs: 1_000, max: 3 };

/** The settings of nats-server, for the other servers of its cluster and for clients. A client to which messages still go may be noticed later, or not. */
export function pingSettings({ everyMs, max }: Pings): string[] {
  return [`ping_interval: "${everyMs / 1_000}s"`, `ping_max: ${max}`];
}
