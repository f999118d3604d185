import type { WorkItem } from './bus.ts';

/** Fields of the log line about a delivery whose lease was lost: its worker is alive, and the item may be delivered again. */
export function lostLease({ messageId, deliveryCount }: Pick<WorkItem, 'messageId' | 'deliveryCount'>, kind: string) {
  return { lease: 'lost', kind, message_id: messageId, delivery: deliveryCount } as const;
}
