import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem, WorkKind } from './bus.ts';
import { pauseFor } from './pause.ts';
import { Settling } from './settling.ts';

export interface DispatchedItemOptions {
  kind: WorkKind;
  messageId: string;
  body: string;
  publishedAtMs: number;
  /** How long the publisher waits for a heartbeat. */
  ackWaitMs: number;
  /** The earliest possible delivery, by `performance.now()`. */
  deliveredAt: number;
  /** @throws `bus.closed` */
  assertOpen(): void;
  /** Waits for a reply of the broker; resolves with when the request was sent, by `performance.now()`. @throws without a reply */
  confirmConnected(): Promise<number>;
  /** Stores it, as an item that was delivered once. */
  store(): Promise<unknown>;
  /** The consumer is stopping: a delayed nak stores at once. */
  stopping: AbortSignal;
  log: Log;
}

/**
 * Share of the publisher's wait. The worker's heartbeat and the reply that extends its lease are different messages, each every third of that wait: one may
 * be that much older than the other.
 */
const LEASE_SHARE = 2 / 3;

/** How long an item may be in flight without a reply of the bus. */
export function dispatchedLeaseMs(ackWaitMs: number): number {
  return LEASE_SHARE * ackWaitMs;
}

/**
 * The `WorkItem` of a dispatched item, stored nowhere: ack costs nothing, nak stores it. Without heartbeats for a lease's length the publisher gives the item
 * to another worker. So the worker counts a lease too, extended only by replies of the bus: a paused or cut-off worker learns from it that the item may have
 * another one.
 */
export function dispatchedItem(options: DispatchedItemOptions): WorkItem {
  const { kind, messageId, body, publishedAtMs, deliveredAt, assertOpen, confirmConnected, store, stopping, log } = options;
  const leaseMs = dispatchedLeaseMs(options.ackWaitMs);
  let leaseEndsAt = deliveredAt + leaseMs;
  const settling = new Settling(assertOpen);
  const hasLease = () => performance.now() < leaseEndsAt;
  return {
    messageId,
    body,
    deliveryCount: 1,
    publishedAtMs,
    ack: () => settling.once(async () => {}),
    nak: (delayMs) =>
      settling.once(async () => {
        // The publisher redelivers it by itself.
        if (!hasLease()) return;
        if (delayMs > 0) await pauseFor(delayMs, stopping);
        await store();
      }),
    term: (reason) => settling.once(async () => log.error({ kind, message_id: messageId, delivery: 1, reason }, 'a work item was dropped by its handler')),
    working: async () => {
      assertOpen();
      const lost = () => new SwitchyardError('bus.lease_lost', `the lease of work item ${messageId} is lost`);
      if (settling.isSettled || !hasLease()) throw lost();
      const sentAt = await confirmConnected();
      if (!hasLease()) throw lost();
      leaseEndsAt = Math.max(leaseEndsAt, sentAt + leaseMs);
    },
  };
}
