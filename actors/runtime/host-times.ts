/** Failure detection among hosts. The epoch ensures correctness; these decide how soon others take over. */
export interface HostTimes {
  /** Between two heartbeats. */
  beatMs: number;
  /** A host without a heartbeat for this long is dead, by the database's clock. */
  expiresAfterMs: number;
  /** Without having written a heartbeat for this long a host drops its partitions, before others acquire them. */
  dropAfterMs: number;
  /** Without the broker for this long, while another host has it, a host releases its partitions to those that have it. */
  cutOffMs: number;
}

/** `cutOffMs` allows for a reconnect and for a broker's restart; a silent connection is closed after two pings, 15 s at most (bus/nats/connection/dial.ts). */
export const hostTimes: HostTimes = { beatMs: 1_000, expiresAfterMs: 5_000, dropAfterMs: 4_000, cutOffMs: 10_000 };
