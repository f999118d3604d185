import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { WorkItem, WorkKind } from '../../bus.ts';
import { lostLease } from '../../lost-lease.ts';
import { attemptOf } from '../../messages/attempt-number.ts';
import { Settling } from '../../settling.ts';
import type { NatsLink } from '../connection/link.ts';

/**
 * One attempt in a cluster to prolong or settle. The leader of a consumer answers within milliseconds, and a repetition changes nothing: a lost leader takes no
 * more than this of a lease. `-NAK` is not repeated so soon: a second one queues an item again that another worker may have by then.
 */
const CLUSTER_ATTEMPT_MS = 1_000;
/** Timers may fire early: so a failed extension ends after the lease, as `bus.lease_lost`. */
const TIMER_SLACK_MS = 10;

export interface WorkItemOptions {
  link: Pick<NatsLink, 'isCluster'> & { retries: Pick<NatsLink['retries'], 'run' | 'assertOpen'>; requests: Pick<NatsLink['requests'], 'ask'> };
  kind: WorkKind;
  messageId: string;
  body: string;
  delivery: number;
  storedAtMs: number;
  /** Reply subject for acks of this delivery. */
  reply: string;
  /** The earliest possible delivery, by `performance.now()`. */
  deliveredAt: number;
  ackWaitMs: number;
  budgetMs: number;
  log: Log;
}

/** A queued item that this consumer executes. */
export interface QueuedItem extends WorkItem {
  hasLease(): boolean;
  /**
   * The broker has delivered the item again, as after an election. True: this delivery still has the lease, and goes on with the reply subject of the later one,
   * which every leader of the consumer accepts.
   */
  absorb(later: { messageId: string; storedAtMs: number; reply: string }): boolean;
}

/**
 * The `WorkItem` of a queued item. The broker does not report an expired lease: it is counted here, on a monotonic clock, and extended only by the broker's
 * replies. The broker replies to all verbs, even for an old delivery. `+ACK` settles the item from any of its deliveries.
 */
export function workItem(options: WorkItemOptions): QueuedItem {
  const { link, kind, messageId, body, delivery, storedAtMs, deliveredAt, ackWaitMs, budgetMs, log } = options;
  let { reply } = options;
  let isReturned = false;
  let leaseEndsAt = deliveredAt + ackWaitMs;
  const settling = new Settling(() => link.retries.assertOpen());
  const hasLease = () => performance.now() < leaseEndsAt;
  /** The broker may have redelivered it before it read the settlement. */
  const noteLateness = () => {
    if (!hasLease()) log.warn(lostLease({ messageId, deliveryCount: delivery }, kind), 'a work item was settled after its lease, and may be delivered again');
  };
  const send = (what: string, verb: string, forMs: number) =>
    link.retries.run(what, forMs, async (timeoutMs) => {
      const isRepeatable = link.isCluster && !verb.startsWith('-NAK');
      await link.requests.ask(reply, verb, { timeoutMs: isRepeatable ? Math.min(timeoutMs, CLUSTER_ATTEMPT_MS) : timeoutMs });
    });
  return {
    messageId,
    body,
    deliveryCount: delivery,
    attempt: attemptOf(delivery),
    publishedAtMs: storedAtMs,
    hasLease,
    ack: () => settling.once(() => send('take an ack', '+ACK', budgetMs).then(noteLateness)),
    nak: (delayMs) =>
      settling.once(async () => {
        isReturned = true;
        if (hasLease()) await send('take an item back', delayMs > 0 ? `-NAK {"delay": ${Math.ceil(delayMs * 1_000_000)}}` : '-NAK', budgetMs);
      }),
    term: (reason) =>
      settling.once(() => {
        log.error({ kind, message_id: messageId, delivery, reason }, 'a work item was dropped by its handler');
        return send('drop an item', '+TERM', budgetMs);
      }),
    working: async () => {
      link.retries.assertOpen();
      const lost = () => new SwitchyardError('bus.lease_lost', `the lease of work item ${messageId} is lost`);
      if (settling.isSettled || !hasLease()) throw lost();
      const sentAt = performance.now();
      try {
        await send('prolong a lease', '+WPI', leaseEndsAt - sentAt + TIMER_SLACK_MS);
      } catch (error) {
        if (hasLease()) throw error;
        throw lost();
      }
      if (!hasLease()) throw lost();
      leaseEndsAt = Math.max(leaseEndsAt, sentAt + ackWaitMs);
    },
    absorb: (later) => {
      // A stream that was made anew counts from 1 again.
      if (later.messageId !== messageId || later.storedAtMs !== storedAtMs) return false;
      if (isReturned || !hasLease()) return false;
      reply = later.reply;
      return true;
    },
  };
}
