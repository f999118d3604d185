import type { WorkItem } from '#bus/bus.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** How long an item stays with a worker that says nothing: as short as a reader may wait before it learns that a worker died. */
export const ACK_WAIT_MS = 6_000;
const EXTEND_EVERY_MS = 2_000;
/** Of the lease, after which the item may soon be somebody else's: a call that went on would be made twice. */
const LOST_AFTER_MS = 0.8 * ACK_WAIT_MS;

/** Extends the lease of an item until it is stopped. `onLost` is called once, when the lease is lost or could not be extended in time. */
export function keepLease(item: WorkItem, { onLost, log }: { onLost: () => void; log: Log }): { stop(): void } {
  let isExtending = false;
  const lose = () => {
    stop();
    onLost();
  };
  const lost = setTimeout(lose, LOST_AFTER_MS);
  const ticks = setInterval(() => {
    if (isExtending) return;
    isExtending = true;
    item
      .working()
      .then(
        () => lost.refresh(),
        (error: unknown) => {
          if (failureOf(error).code === 'bus.lease_lost') lose();
          else log.warn({ err: error, call_id: item.messageId }, 'the lease of a router call could not be extended');
        },
      )
      .finally(() => {
        isExtending = false;
      });
  }, EXTEND_EVERY_MS);
  function stop() {
    clearTimeout(lost);
    clearInterval(ticks);
  }
  return { stop };
}
