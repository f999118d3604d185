/** How hosts tell that one of them is gone. The epoch is what keeps the log right; these only say how soon others take over. */
export interface HostTimes {
  /** Between two heartbeats. */
  beatMs: number;
  /** Without a heartbeat for this long a host counts as dead, by the database's clock. */
  expiresAfterMs: number;
  /** A host that could not write its heartbeat for this long drops its partitions by itself, before others take them. */
  dropAfterMs: number;
  /** Without an answer of the broker for this long, in which another host had them, a host gives its partitions to those that have. */
  cutOffMs: number;
}

/** `cutOffMs` leaves a connection on which no reply comes time to be found out (two pings, 15 s at most) or to heal, and a broker its restart. */
export const hostTimes: HostTimes = { beatMs: 1_000, expiresAfterMs: 5_000, dropAfterMs: 4_000, cutOffMs: 10_000 };
