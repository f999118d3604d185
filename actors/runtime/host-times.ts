/** Failure detection among hosts. Correctness rests on the epoch; these times only decide how soon others take over. */
export interface HostTimes {
  /** Between two heartbeats. */
  beatMs: number;
  /** A host without a heartbeat for this long is dead, by the database's clock. */
  expiresAfterMs: number;
  /** A host that could not write a heartbeat for this long drops its partitions, before others acquire them. */
  dropAfterMs: number;
  /** A host without replies of the broker for this long, in which another host had them, releases its partitions to those that have. */
  cutOffMs: number;
}

/** `cutOffMs` exceeds the detection of a dead connection (two pings, 15 s at most, or a reconnect) and a restart of the broker. */
export const hostTimes: HostTimes = { beatMs: 1_000, expiresAfterMs: 5_000, dropAfterMs: 4_000, cutOffMs: 10_000 };
