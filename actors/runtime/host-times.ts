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
  /** A dispatched call that no heartbeat of a worker has named for this long is lost. */
  callSilenceMs: number;
}

/**
 * `cutOffMs` is longer than a reconnect or a broker's restart, and less than the 15 s after which NATS closes a silent connection: it counts from the last
 * reply to the host's own questions, one per beat (bus-contact.ts), so no ping needs to fail first. `callSilenceMs` is three heartbeats of a worker, and longer
 * than the lease of what it has begun (`dispatchedLeaseMs`); the call is queued one to three seconds later, when the silence is noticed and judged.
 */
export const hostTimes: HostTimes = { beatMs: 1_000, expiresAfterMs: 5_000, dropAfterMs: 4_000, cutOffMs: 10_000, callSilenceMs: 6_000 };
