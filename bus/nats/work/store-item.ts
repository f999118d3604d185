import type { WorkKind } from '../../bus.ts';
import { workQueues } from '../../work-queues.ts';
import type { StoredPublish } from '../connection/stored-publish.ts';
import { deliveryHeaders } from './earlier-deliveries.ts';

export type StoreItem = (kind: WorkKind, messageId: string, body: string, earlierDeliveries?: number) => Promise<{ duplicate: boolean }>;

/** Puts items on their queue. One that may be stored twice is executed only while its effect is open: it counts as delivered before. */
export function itemStore(publish: StoredPublish): StoreItem {
  return async (kind, messageId, body, earlierDeliveries = 0) => {
    const headersAgain = () => deliveryHeaders(earlierDeliveries + 1);
    const { duplicate } = await publish(workQueues[kind].pattern, messageId, body, deliveryHeaders(earlierDeliveries), headersAgain);
    return { duplicate };
  };
}
