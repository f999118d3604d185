import type { Deadlines } from '#shared/deadlines.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem } from './bus.ts';

export interface LeaseTimes {
  /** How long an item stays with a worker that says nothing. */
  ackWaitMs: number;
  extendEveryMs: number;
}

/** Of tools and callbacks: nobody watches them being made, so a dead worker may be noticed late. */
export const effectLease: LeaseTimes = { ackWaitMs: 15_000, extendEveryMs: 5_000 };
/** Of model calls: as short as a reader may wait before it learns that a worker died. */
export const callLease: LeaseTimes = { ackWaitMs: 6_000, extendEveryMs: 2_000 };

/** Of the lease, after which the item may soon be somebody else's: what went on would be done twice. */
const LOST_AFTER = 0.8;

/** What could not be extended is tried again sooner: a broker that was away for a moment is back, and the lease is running. */
const RETRIES_PER_EXTENSION = 8;

interface LeaseOptions {
  /** Called once, when the lease is lost or could not be extended in time. */
  onLost: () => void;
  deadlines: Deadlines;
  log: Log;
}

/** Extends the lease of an item until it is stopped. */
export function renewLease(item: WorkItem, { ackWaitMs, extendEveryMs }: LeaseTimes, { onLost, deadlines, log }: LeaseOptions): { stop(): void } {
  let isStopped = false;
  let isFailing = false;
  const lost = deadlines.begin(LOST_AFTER * ackWaitMs, lose);
  const next = deadlines.begin(extendEveryMs, extend);
  function extend() {
    item.working().then(
      () => {
        if (isStopped) return;
        isFailing = false;
        deadlines.restart(lost, LOST_AFTER * ackWaitMs);
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
