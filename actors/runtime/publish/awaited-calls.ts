import type { Bus, Subscription } from '#bus/bus.ts';
import { heartbeat, type InterestReply } from '#bus/messages/heartbeat.ts';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Outbox } from './outbox.ts';

interface ReplyDeps {
  bus: Bus;
  outbox: Outbox;
  /** The epoch under which this host owns a partition. */
  epochOf(partition: number): number | undefined;
  log: Log;
}

/**
 * Replies to workers' heartbeats with their calls that are still open, so that a call ends even if its abort was lost. Only a partition's owner
 * replies, once its open effects are loaded; the epoch exposes a former owner that has not noticed its loss.
 */
export function replyForCalls({ bus, outbox, epochOf, log }: ReplyDeps): Subscription {
  const subscriptions = Array.from({ length: PARTITION_COUNT }, (_, partition) =>
    bus.notices.subscribe(subjectOf(addresses.heartbeats, partition), (_subject, body) => {
      const epoch = epochOf(partition);
      if (epoch === undefined || !outbox.hasLoaded(partition)) return;
      try {
        const { workerId, question, calls } = heartbeat.parse(JSON.parse(body));
        outbox.onHeartbeat(calls);
        const reply: InterestReply = { v: 1, from: String(partition), question, calls: calls.filter((callId) => outbox.isOpen(callId)), epoch };
        bus.notices.publish(subjectOf(addresses.interestReplies, workerId), JSON.stringify(reply));
      } catch (error) {
        log.warn({ err: error, partition }, 'a request for the interest in calls could not be answered');
      }
    }),
  );
  return { stop: async () => void (await Promise.all(subscriptions.map((subscription) => subscription.stop()))) };
}
