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

interface LeaseOptions {
  /** Called once, when the lease is lost or could not be extended in time. */
  onLost: () => void;
  log: Log;
}

/** Extends the lease of an item until it is stopped. */
export function keepLease(item: WorkItem, { ackWaitMs, extendEveryMs }: LeaseTimes, { onLost, log }: LeaseOptions): { stop(): void } {
  let isExtending = false;
  const lose = () => {
    stop();
    onLost();
  };
  const lost = setTimeout(lose, LOST_AFTER * ackWaitMs);
  const ticks = setInterval(() => {
    if (isExtending) return;
    isExtending = true;
    item
      .working()
      .then(
        () => lost.refresh(),
        (error: unknown) => {
          if (failureOf(error).code === 'bus.lease_lost') lose();
          else log.warn({ err: error, message_id: item.messageId }, 'the lease of a work item could not be extended');
        },
      )
      .finally(() => {
        isExtending = false;
      });
  }, extendEveryMs);
  function stop() {
    clearTimeout(lost);
    clearInterval(ticks);
  }
  return { stop };
}
