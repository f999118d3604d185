import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem } from './bus.ts';
import { lostLease } from './lost-lease.ts';

/** Logs that the handler of a queued item has thrown. A lost lease is no fault of it: the broker had no leader, or the process was paused. */
export function logFailedHandler(log: Log, kind: string, item: Pick<WorkItem, 'messageId' | 'deliveryCount'>, error: unknown): void {
  if (failureOf(error).code === 'bus.lease_lost') {
    log.warn({ err: error, ...lostLease(item, kind) }, 'a work item whose lease was lost is left to its next delivery');
    return;
  }
  const { messageId, deliveryCount: delivery } = item;
  log.error({ err: error, kind, message_id: messageId, delivery }, 'a work handler failed: the item is redelivered when its lease expires');
}
