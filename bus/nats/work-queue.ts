import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ConsumeOptions, Subscription, WorkItem, WorkKind, WorkQueue } from '../bus.ts';
import type { NatsLink } from './link.ts';
import type { StoredPublish } from './stored-publish.ts';
import { workConsumers } from './streams.ts';
import type { Closable } from './types.ts';
import { WorkConsumer } from './work-consumer.ts';

export interface WorkQueueDeps {
  link: NatsLink;
  publish: StoredPublish;
  budgetMs: number;
  log: Log;
}

/** The work queue as a stream whose messages go when they are acked, with one durable consumer per kind. */
export function natsWorkQueue({ link, publish, budgetMs, log }: WorkQueueDeps): WorkQueue & Closable {
  const consumers = new Set<WorkConsumer>();
  let stopping = false;
  return {
    async publish(kind: WorkKind, messageId: string, body: string) {
      const { duplicate } = await publish(workConsumers[kind].subject, messageId, body);
      return { duplicate };
    },
    consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription {
      if (stopping) throw new SwitchyardError('bus.closed', 'the bus is closed');
      const consumer = new WorkConsumer({ ...options, link, kind, handler, budgetMs, log });
      consumers.add(consumer);
      return {
        stop: async () => {
          await consumer.stop();
          consumers.delete(consumer);
        },
      };
    },
    async stopReaders() {
      stopping = true;
      await Promise.all([...consumers].map((consumer) => consumer.stop()));
    },
  };
}
