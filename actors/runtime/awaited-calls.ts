import type { Bus, Subscription } from '#bus/bus.ts';
import { heartbeat, type InterestReply } from '#bus/messages/heartbeat.ts';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Outbox } from './outbox.ts';

interface ReplyDeps {
  bus: Bus;
  outbox: Outbox;
  /** Under which this host holds a partition. */
  epochOf(partition: number): number | undefined;
  log: Log;
}

/**
 * Tells the workers that ask which of their calls an actor still waits for, so that one whose abort was lost comes to its end. Only the
 * owner of a call's partition answers, and only once it knows what is open there. One that has lost the partition and not noticed answers, too:
 * its epoch says so.
 */
export function replyForCalls({ bus, outbox, epochOf, log }: ReplyDeps): Subscription {
  const subscriptions = Array.from({ length: PARTITION_COUNT }, (_, partition) =>
    bus.notices.subscribe(subjectOf(addresses.heartbeats, partition), (_subject, body) => {
      const epoch = epochOf(partition);
      if (epoch === undefined || !outbox.hasLoaded(partition)) return;
      try {
        const { workerId, question, calls } = heartbeat.parse(JSON.parse(body));
        const reply: InterestReply = { v: 1, from: String(partition), question, calls: calls.filter((callId) => outbox.isOpen(callId)), epoch };
        bus.notices.publish(subjectOf(addresses.interestReplies, workerId), JSON.stringify(reply));
      } catch (error) {
        log.warn({ err: error, partition }, 'a question about calls could not be answered');
      }
    }),
  );
  return { stop: async () => void (await Promise.all(subscriptions.map((subscription) => subscription.stop()))) };
}
