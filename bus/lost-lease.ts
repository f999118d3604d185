import { longestLateness } from '#shared/lifecycle/longest-lateness.ts';
import type { WorkItem } from './bus.ts';

/**
 * Fields of the log line about a delivery whose lease was lost: its worker is alive, and the item may be delivered again. `loop_late_ms`: how late its event
 * loop was at most in the last ten seconds, since a lease is not extended meanwhile.
 */
export function lostLease({ messageId, deliveryCount }: Pick<WorkItem, 'messageId' | 'deliveryCount'>, kind: string) {
  return { lease: 'lost', kind, message_id: messageId, delivery: deliveryCount, loop_late_ms: longestLateness.measureMs() } as const;
}
