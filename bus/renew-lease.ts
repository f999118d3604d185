import type { Deadlines } from '#shared/deadlines.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem } from './bus.ts';

export interface LeaseTimes {
  /** How long a lease lasts without an extension. */
  ackWaitMs: number;
  extendEveryMs: number;
}

/** For tools and callbacks: nothing waits for them live, so a worker's death may be noticed late. */
export const effectLease: LeaseTimes = { ackWaitMs: 15_000, extendEveryMs: 5_000 };
/** For model calls: as short as a reader may wait for the notice of a worker's death. */
export const callLease: LeaseTimes = { ackWaitMs: 6_000, extendEveryMs: 2_000 };

/** Share of the lease after which it counts as lost: soon another worker may have the item and do it twice. */
const LOST_AFTER = 0.8;

/** A failed extension is retried sooner: the broker may be back, and the lease is running out. */
const RETRIES_PER_EXTENSION = 8;

/** A timer that fires so much later than it was due shows that the process got no CPU. */
const LATE_MS = 50;

interface LeaseOptions {
  /** Called once: the lease is lost, or could not be extended in time. */
  onLost: () => void;
  deadlines: Deadlines;
  log: Log;
}

/**
 * Extends the lease of an item until stopped. A process that was paused and continues before the end of the lease asks for an extension at once, whichever of
 * its timers were due, and has the item until that end. An item that counts its own lease decides by it: it may be shorter, or extended meanwhile.
 */
export function renewLease(item: WorkItem, { ackWaitMs, extendEveryMs }: LeaseTimes, { onLost, deadlines, log }: LeaseOptions): { stop(): void } {
  let isStopped = false;
  let isFailing = false;
  let askedAt = performance.now();
  let endsAt = askedAt + ackWaitMs;
  const lost = deadlines.begin(lostAfterMs(), overdue);
  const next = deadlines.begin(extendEveryMs, extend);
  /** The reply may be read late: the lease counts from the request. */
  function lostAfterMs() {
    return Math.min(LOST_AFTER * ackWaitMs, (item.leaseEndsAt?.() ?? endsAt) - performance.now());
  }
  function extend() {
    const sentAt = performance.now();
    askedAt = sentAt;
    item.working().then(
      () => {
        if (isStopped) return;
        isFailing = false;
        endsAt = Math.max(endsAt, sentAt + ackWaitMs);
        deadlines.restart(lost, lostAfterMs());
        deadlines.restart(next, extendEveryMs);
      },
      (error: unknown) => {
        if (isStopped) return;
        if (failureOf(error).code === 'bus.lease_lost') return lose();
        if (!isFailing) log.warn({ err: error, message_id: item.messageId }, 'the lease of a work item could not be extended');
        isFailing = true;
        deadlines.restart(next, extendEveryMs / RETRIES_PER_EXTENSION);
      },
    );
  }
  function overdue() {
    const now = performance.now();
    const isLate = now - lost.at > LATE_MS;
    const leftMs = (item.leaseEndsAt?.() ?? (isLate ? endsAt : now)) - now;
    if (leftMs <= 0) return lose();
    deadlines.restart(lost, leftMs);
    // The one that was due meanwhile may have been sent just now.
    if (now - askedAt > LATE_MS) extend();
  }
  function lose() {
    stop();
    onLost();
  }
  function stop() {
    isStopped = true;
    deadlines.stop(lost);
    deadlines.stop(next);
  }
  return { stop };
}
