import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem, WorkKind } from './bus.ts';
import { pauseFor } from './pause.ts';
import { Settling } from './settling.ts';
import { textOfUtf8 } from './text-of-utf8.ts';

export interface DispatchedItemOptions {
  kind: WorkKind;
  messageId: string;
  body: DispatchedBody;
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

/** Bytes of a long one: its consumer need not decode them. */
export type DispatchedBody = string | Uint8Array;

/** From here on a body stays bytes. */
const LONG_BYTES = 32 * 1024;
/** The largest buffer, as a multiple of a body, that the body retains: of a larger one it is copied. */
const MOST_RETAINED = 2.5;

export function dispatchedBody(bytes: Uint8Array): DispatchedBody {
  if (bytes.byteLength < LONG_BYTES) return textOfUtf8(bytes);
  return bytes.buffer.byteLength <= bytes.byteLength * MOST_RETAINED ? bytes : bytes.slice();
}

export function textOfBody(body: DispatchedBody): string {
  return typeof body === 'string' ? body : textOfUtf8(body);
}

/** A `WorkItem` whose lease is counted by its worker. */
export interface DispatchedItem extends WorkItem {
  hasLease(): boolean;
  leaseEndsAt(): number;
  /** Extends the lease, unless it is over. @param sentAt the bus has received what this process had sent until then, by `performance.now()` */
  onConfirmed(sentAt: number): void;
}

/**
 * Share of the publisher's wait. The worker's heartbeat and the reply that extends its lease are different messages: a heartbeat is sent every third of that
 * wait, so the last one may be that much older than the reply.
 */
const LEASE_SHARE = 2 / 3;
/** Until the first heartbeat must have named it. The publisher waits from before the dispatch, so a reply can't extend the lease beyond this. */
const UNNAMED_SHARE = 9 / 10;
const HEARTBEAT_SHARE = 1 / 3;

/** How long an item may be in flight without a reply of the bus. */
export function dispatchedLeaseMs(ackWaitMs: number): number {
  return LEASE_SHARE * ackWaitMs;
}

/**
 * The `WorkItem` of a dispatched item, stored nowhere: ack costs nothing, nak stores it. Without heartbeats for a lease's length the publisher gives the item
 * to another worker. So the worker counts a lease too, extended only by replies of the bus: a paused or cut-off worker learns from it that the item may have
 * another one.
 */
export function dispatchedItem(options: DispatchedItemOptions): DispatchedItem {
  const { kind, messageId, body, publishedAtMs, deliveredAt, ackWaitMs, assertOpen, confirmConnected, store, stopping, log } = options;
  const namedAt = performance.now() + HEARTBEAT_SHARE * ackWaitMs;
  const leaseMs = dispatchedLeaseMs(ackWaitMs);
  let leaseEndsAt = deliveredAt + leaseMs;
  const settling = new Settling(assertOpen);
  const hasLease = () => performance.now() < leaseEndsAt;
  const extend = (sentAt: number) => {
    const endsAt = sentAt + leaseMs;
    leaseEndsAt = Math.max(leaseEndsAt, sentAt >= namedAt ? endsAt : Math.min(endsAt, deliveredAt + UNNAMED_SHARE * ackWaitMs));
  };
  const item: DispatchedItem = {
    messageId,
    body: typeof body === 'string' ? body : '',
    deliveryCount: 1,
    publishedAtMs,
    hasLease,
    leaseEndsAt: () => leaseEndsAt,
    onConfirmed: (sentAt) => {
      if (hasLease()) extend(sentAt);
    },
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
      extend(sentAt);
    },
  };
  return typeof body === 'string' ? item : new LongItem(item, body);
}

/** A dispatched item with a long body, which is decoded when it is read. */
class LongItem implements DispatchedItem {
  readonly #item: DispatchedItem;
  #body: DispatchedBody;
  readonly messageId: string;
  readonly deliveryCount: number;
  readonly publishedAtMs: number;

  constructor(item: DispatchedItem, body: Uint8Array) {
    this.#item = item;
    this.#body = body;
    this.messageId = item.messageId;
    this.deliveryCount = item.deliveryCount;
    this.publishedAtMs = item.publishedAtMs;
  }

  get body(): string {
    return textOfBody(this.#body);
  }

  /** What is set takes the place of the bytes, too. */
  set body(text: string) {
    this.#body = text;
  }

  get bytes(): Uint8Array | null {
    return typeof this.#body === 'string' ? null : this.#body;
  }

  hasLease(): boolean {
    return this.#item.hasLease();
  }

  leaseEndsAt(): number {
    return this.#item.leaseEndsAt();
  }

  onConfirmed(sentAt: number): void {
    this.#item.onConfirmed(sentAt);
  }

  ack(): Promise<void> {
    return this.#item.ack();
  }

  nak(delayMs: number): Promise<void> {
    return this.#item.nak(delayMs);
  }

  term(reason: string): Promise<void> {
    return this.#item.term(reason);
  }

  working(): Promise<void> {
    return this.#item.working();
  }
}
