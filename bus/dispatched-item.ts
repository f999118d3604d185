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
  /** How long its publisher waits for a sign of life of whoever has it. */
  ackWaitMs: number;
  /** When it came at the earliest, by `performance.now()`. */
  deliveredAt: number;
  /** @throws `bus.closed` */
  assertOpen(): void;
  /** Resolves once the bus has answered, with the time at which it was asked, by `performance.now()`. @throws when it does not */
  reach(): Promise<number>;
  /** Stores it, as an item that was delivered once. */
  store(): Promise<unknown>;
  /** Its consumer stops: what is put off is stored at once. */
  stopping: AbortSignal;
  log: Log;
}

/**
 * Of the time that its publisher waits. The sign of life that the publisher hears and the word by which a holder prolongs his lease are not
 * the same message: each comes every third of that time, so that the one may be that much older than the other.
 */
const LEASE_SHARE = 2 / 3;

/** How long an item may be held without a word of the bus. */
export function dispatchedLeaseMs(ackWaitMs: number): number {
  return LEASE_SHARE * ackWaitMs;
}

/**
 * What a handler holds of an item that nobody has stored: to acknowledge it costs nothing, and to send it back means to store it. Its
 * publisher gives it to somebody else when it hears nothing for as long as a lease, so the holder counts one all the same, prolonged only by
 * what the bus has answered: one that was paused, or is out of reach, learns from it that the item may be somebody else's.
 */
export function dispatchedItem(options: DispatchedItemOptions): WorkItem {
  const { kind, messageId, body, publishedAtMs, deliveredAt, assertOpen, reach, store, stopping, log } = options;
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
        // Its publisher gives it to somebody else by himself.
        if (!hasLease()) return;
        if (delayMs > 0) await pauseFor(delayMs, stopping);
        await store();
      }),
    term: (reason) => settling.once(async () => log.error({ kind, message_id: messageId, delivery: 1, reason }, 'a work item was dropped by its handler')),
    working: async () => {
      assertOpen();
      const lost = () => new SwitchyardError('bus.lease_lost', `the lease of work item ${messageId} is lost`);
      if (settling.isSettled || !hasLease()) throw lost();
      const askedAt = await reach();
      if (!hasLease()) throw lost();
      leaseEndsAt = Math.max(leaseEndsAt, askedAt + leaseMs);
    },
  };
}
