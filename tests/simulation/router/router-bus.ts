import type { Bus, ConsumeOptions, UsageLog, WorkItem, WorkKind, WorkQueue } from '../../../bus/bus.ts';
import { dispatchedItem, dispatchedLeaseMs } from '../../../bus/dispatched-item.ts';
import { itemStore, type StoreItem } from '../../../bus/nats/work/store-item.ts';
import { pauseFor } from '../../../bus/pause.ts';
import { addresses, subjectOf } from '../../../bus/subjects.ts';
import { textOfUtf8 } from '../../../bus/text-of-utf8.ts';
import { SwitchyardError } from '../../../shared/errors/switchyard-error.ts';
import { silentLog } from '../../../shared/telemetry/log.ts';
import type { ModelCluster } from '../cluster/model-cluster.ts';
import { simulatedPublisher } from '../cluster/simulated-publish.ts';
import { askerOf, type BusOptions, openModelBus } from '../model-bus.ts';
import type { Process } from '../scheduler.ts';
import { type ModelTokens, tokenStreamOf } from './model-tokens.ts';
import type { ModelUsage } from './model-usage.ts';
import type { Wire } from './wire.ts';

const USAGE_SUBJECT = subjectOf(addresses.usage);
/** Of a batch of records that a handler rejected. */
const REJECTED_MS = 500;
/** After which a process notices that its connection is half-open. */
const NOTICED_MS = 4_000;

/** A consumer of dispatched items. */
interface DispatchConsumer extends Pick<ConsumeOptions, 'concurrency' | 'ackWaitMs'> {
  process: Process;
  kind: WorkKind;
  inFlight: number;
  begin(item: WorkItem): void;
}

/** The broker's part beyond that of the sessions' simulation. */
export interface RouterBroker {
  usage: ModelUsage;
  tokens: ModelTokens;
  wire: Wire;
  dispatchConsumers: DispatchConsumer[];
  /** When processes were cut off. */
  cutAtMs: Map<Process, number>;
  /** Of each process. */
  stores: Map<Process, StoreItem>;
  /** A worker has got a call. */
  taken(process: Process, messageId: string): void;
  /** A call has reached the broker. */
  arrived(messageId: string, body: string): void;
  /** A worker gives up a dispatched call. */
  givenUp(process: Process, messageId: string): void;
  /** An item could not be put on the queue, or it is not known. */
  unpublished(messageId: string): void;
}

export type RouterBusOptions = BusOptions & { cluster: ModelCluster; router: RouterBroker };

/** One process's bus: that of the sessions' simulation with frames, usage records and dispatched calls. */
export function openRouterBus(options: RouterBusOptions): Bus {
  const { scheduler, process, router } = options;
  const base = openModelBus(options);
  return {
    ...base,
    work: workOf(options, base.work),
    tokens: tokenStreamOf(options, router.tokens, router.wire),
    usage: usageOf(options),
    isReady: () => {
      const cutAtMs = router.cutAtMs.get(process);
      return cutAtMs === undefined || scheduler.nowMs - cutAtMs < NOTICED_MS;
    },
  };
}

/** As the driver's: sent again until the broker has replied (usage-log.ts). Records of one tick are not packed. */
function usageOf(options: RouterBusOptions): UsageLog {
  const { process, router } = options;
  const { usage } = router;
  const ask = askerOf(options);
  const publish = simulatedPublisher(options);
  return {
    async append(messageId, body) {
      for (;;) {
        try {
          await publish(USAGE_SUBJECT, messageId, body);
          return;
        } catch (error) {
          if (!(error instanceof SwitchyardError) || error.code !== 'service.unreachable') throw error;
        }
      }
    },
    consume(handler, { maxBatch }) {
      const consumer: ModelUsage['consumers'][number] = {
        ...{ process, maxBatch, isBusy: false },
        take(batch) {
          const messages = batch.map(({ messageId, body }) => ({ messageId, body }));
          const accept = () => ask('ack usage', () => usage.ack(batch)).catch(() => {});
          const reject = async () => {
            await ask('return usage', () => usage.return(batch, REJECTED_MS)).catch(() => {});
            await pauseFor(REJECTED_MS);
          };
          handler(messages)
            .then(accept, reject)
            .then(() => {
              consumer.isBusy = false;
            })
            .catch(() => {});
        },
      };
      usage.consumers.push(consumer);
      return {
        stop: async () => {
          usage.consumers = usage.consumers.filter((one) => one !== consumer);
        },
      };
    },
    backlog: () => ask('usage backlog', () => usage.backlog()),
  };
}

function workOf(options: RouterBusOptions, base: WorkQueue): WorkQueue {
  const { scheduler, process, router } = options;
  const refusals = new Set<(messageId: string) => void>();
  const publish = itemStore(simulatedPublisher(options));
  router.stores.set(process, publish);
  const dispatched = (kind: WorkKind, messageId: string, body: string, publishedAtMs: number) => {
    const consumers = router.dispatchConsumers.filter((one) => one.kind === kind && !router.cutAtMs.has(one.process));
    if (consumers.length === 0) {
      scheduler.post(process, `refusals of ${process.id}`, 'learns that no worker is there', () => {
        for (const refused of refusals) refused(messageId);
      });
      return;
    }
    const consumer = scheduler.chance.pick(consumers);
    const deliveredAtMs = scheduler.nowMs;
    scheduler.post(consumer.process, `dispatches to ${consumer.process.id}`, 'receives a call', () =>
      takeDispatched(options, consumer, { kind, messageId, body, publishedAtMs, deliveredAtMs }),
    );
  };
  return {
    ...base,
    publish: (kind, messageId, body, earlierDeliveries) =>
      publish(kind, messageId, body, earlierDeliveries).catch((error: unknown) => {
        router.unpublished(messageId);
        throw error;
      }),
    dispatch(kind, messageId, bytes) {
      const body = textOfUtf8(bytes);
      const publishedAtMs = Date.now();
      router.wire.send(process, () => {
        router.arrived(messageId, body);
        dispatched(kind, messageId, body, publishedAtMs);
      });
    },
    onRefused(handler) {
      refusals.add(handler);
      return { stop: async () => void refusals.delete(handler) };
    },
    consume(kind, { concurrency, ackWaitMs }, handler) {
      const taking = async (item: WorkItem) => {
        router.taken(process, item.messageId);
        await handler(item);
      };
      const consumer: DispatchConsumer = {
        ...{ process, kind, concurrency, ackWaitMs, inFlight: 0 },
        begin(item) {
          consumer.inFlight += 1;
          taking(item)
            .catch(() => {})
            .finally(() => {
              consumer.inFlight -= 1;
            });
        },
      };
      router.dispatchConsumers.push(consumer);
      return base.consume(kind, { concurrency, ackWaitMs }, taking);
    },
  };
}

interface Dispatched {
  kind: WorkKind;
  messageId: string;
  body: string;
  publishedAtMs: number;
  deliveredAtMs: number;
}

/** As the driver does: a process that was paused knows that what it reads may have been delivered since. */
function takeDispatched(sender: RouterBusOptions, consumer: DispatchConsumer, { kind, messageId, body, publishedAtMs, deliveredAtMs }: Dispatched): void {
  const { scheduler, router } = sender;
  const { process, ackWaitMs, inFlight, concurrency } = consumer;
  const publish = router.stores.get(process);
  if (publish === undefined) throw new TypeError(`${process.id} has no bus`);
  const ask = askerOf({ ...sender, process });
  const store = (earlierDeliveries: number) => publish(kind, messageId, body, earlierDeliveries);
  const ageMs = scheduler.nowMs - deliveredAtMs;
  if (ageMs >= dispatchedLeaseMs(ackWaitMs)) return;
  if (inFlight >= concurrency) {
    store(0).catch(() => {});
  } else {
    const item = dispatchedItem({
      ...{ kind, messageId, body, publishedAtMs, ackWaitMs, deliveredAt: performance.now() - ageMs, log: silentLog },
      assertOpen: () => {},
      confirmConnected: () => {
        const askedAtMs = performance.now();
        return ask('ping', () => askedAtMs);
      },
      store: () => store(1),
      stopping: new AbortController().signal,
    });
    consumer.begin({
      ...item,
      nak(delayMs) {
        // Once its lease is lost nothing is stored: only its gateway, which may be dead, has it then.
        router.givenUp(process, messageId);
        return item.nak(delayMs);
      },
    });
  }
}
