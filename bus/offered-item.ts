import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem, WorkKind } from './bus.ts';
import { pauseFor } from './pause.ts';

export interface OfferedItemOptions {
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
  /** False while a sign of life would reach nobody. */
  isReachable(): boolean;
  /** Stores it, as an item that was delivered once. */
  store(): Promise<unknown>;
  /** Its consumer stops: what is put off is stored at once. */
  stopping: AbortSignal;
  log: Log;
}

/**
 * What a handler holds of an item that nobody has stored: to acknowledge it costs nothing, and to send it back means to store it. Its
 * publisher gives it to somebody else when it hears nothing for as long as a lease, so the holder counts a lease all the same: one that
 * was paused, or is out of reach, learns from it that the item may be somebody else's.
 */
export function offeredItem(options: OfferedItemOptions): WorkItem {
  const { kind, messageId, body, publishedAtMs, ackWaitMs, deliveredAt, assertOpen, isReachable, store, stopping, log } = options;
  let leaseEndsAt = deliveredAt + ackWaitMs;
  let settled = false;
  const once = async (settle: () => Promise<unknown> | undefined) => {
    assertOpen();
    if (settled) return;
    settled = true;
    try {
      await settle();
    } catch (error) {
      settled = false;
      throw error;
    }
  };
  return {
    messageId,
    body,
    delivery: 1,
    publishedAtMs,
    ack: async () => {
      assertOpen();
      settled = true;
    },
    nak: (delayMs) =>
      once(async () => {
        if (delayMs > 0) await pauseFor(delayMs, stopping);
        await store();
      }),
    term: (reason) =>
      once(() => {
        log.error({ kind, message_id: messageId, delivery: 1, reason }, 'a work item was dropped by its handler');
        return undefined;
      }),
    working: async () => {
      assertOpen();
      const now = performance.now();
      if (settled || now >= leaseEndsAt) throw new SwitchyardError('bus.lease_lost', `the lease of work item ${messageId} is lost`);
      if (!isReachable()) throw new SwitchyardError('service.unreachable', 'the bus is away: nobody hears that this worker lives');
      leaseEndsAt = now + ackWaitMs;
    },
  };
}
