import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription, UsageLog } from '../../bus.ts';
import { addresses, subjectOf } from '../../subjects.ts';
import { assertUsageSize } from '../../usage-limits.ts';
import type { NatsLink } from '../connection/link.ts';
import { storedPublisher } from '../connection/stored-publish.ts';
import type { HeldFrames } from '../tokens/held-frames.ts';
import type { Closable } from '../types.ts';
import { RecordBatches } from './record-batches.ts';
import { usageBacklog } from './usage-backlog.ts';
import { UsageConsumer } from './usage-consumer.ts';

const SUBJECT = subjectOf(addresses.usage);

export interface UsageLogDeps {
  link: NatsLink;
  /** Frames that wait for the records of this tick. */
  held: HeldFrames;
  budgetMs: number;
  ackWaitMs: number;
  onFull: () => void;
  log: Log;
}

/** A stream with work-queue retention and one durable consumer. Records are sent on the connection of tokens, so that none is overtaken by a frame. */
export function natsUsageLog({ link, held, budgetMs, ackWaitMs, onFull, log }: UsageLogDeps): UsageLog & Closable {
  const requests = () => (link.areTokensUp ? link.tokenRequests : link.requests);
  const publish = storedPublisher({ link, budgetMs, onFull, requests });
  const batches = new RecordBatches(held, async (messageId, body) => {
    for (;;) {
      try {
        await publish(SUBJECT, messageId, body);
        return;
      } catch (error) {
        // Each try has waited for its budget, or `publish` refuses since the link is closing.
        if (!(error instanceof SwitchyardError) || error.code !== 'service.unreachable') throw error;
        log.debug({ err: error, message_id: messageId }, 'usage records could not be stored yet: they are sent again');
      }
    }
  });
  const consumers = new Set<UsageConsumer>();
  let stopping = false;
  return {
    async append(messageId, body) {
      assertUsageSize(body);
      link.retries.assertOpen();
      return batches.append(messageId, body);
    },
    consume(handler, { maxBatch, everyMs = 0 }): Subscription {
      if (stopping) throw new SwitchyardError('bus.closed', 'the bus is closed');
      const consumer = new UsageConsumer({ link, handler, maxBatch, everyMs, ackWaitMs, budgetMs, log });
      consumers.add(consumer);
      return {
        stop: async () => {
          await consumer.stop();
          consumers.delete(consumer);
        },
      };
    },
    backlog: () => usageBacklog(link),
    async stopReaders() {
      stopping = true;
      await Promise.all([...consumers].map((consumer) => consumer.stop()));
    },
  };
}
