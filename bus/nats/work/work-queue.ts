import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ConsumeOptions, Subscription, WorkItem, WorkKind, WorkQueue } from '../../bus.ts';
import { assertDispatchable } from '../../dispatch-reports.ts';
import { dispatchedBody } from '../../dispatched-item.ts';
import { perWorkKind, workQueues } from '../../work-queues.ts';
import type { NatsLink } from '../connection/link.ts';
import type { StoredPublish } from '../connection/stored-publish.ts';
import { streams } from '../streams.ts';
import type { Closable } from '../types.ts';
import { Dispatcher } from './dispatcher.ts';
import { PauseDetector } from './pause-detector.ts';
import { itemStore } from './store-item.ts';
import { WorkConsumer, type WorkConsumerOptions } from './work-consumer.ts';
import { WorkStreamWatch } from './work-stream-watch.ts';

/** A late answer is useless: monitoring asks again soon. */
const DEPTHS_BUDGET_MS = 1_000;

export interface WorkQueueDeps {
  link: NatsLink;
  /** Dispatches go to consumers in this process, if there are any. */
  isLocal: boolean;
  clock: Clock;
  publish: StoredPublish;
  budgetMs: number;
  log: Log;
}

/** A stream with work-queue retention, and a durable consumer per kind. */
export function natsWorkQueue({ link, isLocal, clock, publish, budgetMs, log }: WorkQueueDeps): WorkQueue & Closable & { inFlight(): number } {
  const consumers = new Set<WorkConsumer>();
  const pauseDetector = new PauseDetector();
  const dispatcher = new Dispatcher({ link, clock, log });
  const watch = new WorkStreamWatch(link, budgetMs, log);
  let stopping = false;
  const store = itemStore(publish);
  return {
    publish: store,
    dispatch(kind, messageId, body) {
      const consumer = isLocal && link.isUp ? localConsumer(consumers, kind) : null;
      if (consumer === null) return dispatcher.dispatch(kind, messageId, body);
      assertDispatchable(messageId);
      consumer.accept(messageId, dispatchedBody(body));
    },
    maxDispatchBytes: () => dispatcher.maxBytes(),
    onRefused: (handler) => dispatcher.onRefused(handler),
    onStored: (handler) => dispatcher.onStored(handler),
    // A worker of another process goes on.
    earliestDispatchAtMs: 0,
    consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription {
      if (stopping) throw new SwitchyardError('bus.closed', 'the bus is closed');
      const onStored: WorkConsumerOptions['onStored'] = (publisher, messageId) => dispatcher.reportStored(publisher, messageId);
      const consumer = new WorkConsumer({ ...options, link, clock, kind, handler, store, onStored, budgetMs, pauseDetector, log });
      consumers.add(consumer);
      return {
        stop: async () => {
          await consumer.stop();
          consumers.delete(consumer);
        },
      };
    },
    inFlight() {
      let items = 0;
      for (const consumer of consumers) items += consumer.inFlight;
      return items;
    },
    createdAtMs: () => watch.createdAtMs(),
    onRestart: (handler) => watch.onRestart(handler),
    async depths() {
      // Settled items leave the stream.
      const { state } = await link.retries.callApi('count the work', DEPTHS_BUDGET_MS, () =>
        link.manager.streams.info(streams.work.name, { subjects_filter: '>' }),
      );
      return perWorkKind((kind) => state.subjects?.[workQueues[kind].pattern] ?? 0);
    },
    async stopReaders() {
      stopping = true;
      await Promise.all([watch.stop(), ...[...consumers].map((consumer) => consumer.stop())]);
      pauseDetector.stop();
    },
  };
}

/** With a free slot, or else one that stores the item; null: there is none, or all are stopping. */
function localConsumer(consumers: ReadonlySet<WorkConsumer>, kind: WorkKind): WorkConsumer | null {
  const open = [...consumers].filter((one) => one.kind === kind && !one.isStopping);
  return open.find(({ hasFreeSlot }) => hasFreeSlot) ?? open[0] ?? null;
}
