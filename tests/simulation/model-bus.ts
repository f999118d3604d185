import type { Bus, CommandLog, LogPosition, StoredCommand, WorkItem, WorkQueue } from '../../bus/bus.ts';
import { maxDispatchBytes } from '../../bus/dispatch-limits.ts';
import { dispatchedItem, dispatchedLeaseMs } from '../../bus/dispatched-item.ts';
import { attemptOf } from '../../bus/messages/attempt-number.ts';
import { CommandReader } from '../../bus/nats/commands/command-reader.ts';
import { LogFingerprint } from '../../bus/nats/commands/log-fingerprint.ts';
import type { StoredPublish } from '../../bus/nats/connection/stored-publish.ts';
import { itemStore } from '../../bus/nats/work/store-item.ts';
import { fingerprintOf, hasFingerprint } from '../../bus/position-fingerprint.ts';
import { addresses, subjectOf } from '../../bus/subjects.ts';
import { textOfUtf8 } from '../../bus/text-of-utf8.ts';
import { SwitchyardError } from '../../shared/errors/switchyard-error.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { brokerLost } from './broker-lost.ts';
import type { ModelCluster } from './cluster/model-cluster.ts';
import { simulatedPublisher } from './cluster/simulated-publish.ts';
import type { Consumer, Follower, ModelBroker, QueuedItem } from './model-broker.ts';
import type { Process, Scheduler } from './scheduler.ts';

export interface BusOptions {
  scheduler: Scheduler;
  broker: ModelBroker;
  /** Null: a broker of one server, whose publishes are requests. */
  cluster: ModelCluster | null;
  process: Process;
  /** Whether the fingerprint at a reader's position is compared. */
  comparesPositions: boolean;
}

/** Dispatches between connected processes. */
const LOST_ONE_IN = 40;
/** The timeout of a call to a silent broker: the driver's own budget. */
const BUDGET_MS = 8_000;

/**
 * One process's bus. The handling of a reader's position is the product's (bus/nats/commands/command-reader.ts, log-fingerprint.ts), and so is the path of a
 * publish to a cluster (cluster/simulated-publish.ts); what is modelled is the broker, and the feed of a reader. No connection is ever down: calls fail, a restart breaks every feed, and a process
 * that is cut off receives nothing until it has reconnected. A dispatch may be lost.
 */
export function openModelBus(options: BusOptions): Bus {
  const { broker, process } = options;
  const { cluster } = options;
  const publish = cluster === null ? null : simulatedPublisher({ ...options, cluster });
  const nothing = { ready: async () => {}, stop: async () => {} };
  return {
    commands: commandLogOf(options, publish),
    work: workQueueOf(options, publish),
    notices: {
      publish: (subject, body) => {
        if (process.state !== 'dead') broker.publishNotice(process, subject, body);
      },
      subscribe: (pattern, handler) => {
        const stop = broker.listen(process, pattern, handler);
        return { ready: async () => {}, stop: async () => stop() };
      },
    },
    tokens: { publish: () => {}, subscribe: () => nothing, replay: async () => [] },
    blobs: { put: unused, get: unused },
    usage: { append: unused, consume: () => nothing, backlog: unused },
    isReady: () => true,
    connectionNumber: () => broker.connectionOf(process),
    flush: () => {},
    hasCapacity: () => true,
    onReconnect: (handler) => {
      const entry = { process, handler };
      broker.onReconnects.push(entry);
      return { stop: async () => void broker.onReconnects.splice(broker.onReconnects.indexOf(entry), 1) };
    },
    close: async () => {},
  };
}

/** A request to the broker over a connection that may be half-open. */
export function askerOf({ scheduler, broker, process }: BusOptions) {
  return <Result>(label: string, execute: () => Result): Promise<Result> => {
    if (!broker.isCutOff(process)) return scheduler.park<Result>(process, label, brokerLost, execute);
    return new Promise((_, reject) => scheduler.setTimer(process, () => reject(brokerLost()), BUDGET_MS, null));
  };
}

async function unused(): Promise<never> {
  throw new TypeError('nothing is as large as a blob here');
}

function commandLogOf(options: BusOptions, publish: StoredPublish | null): CommandLog {
  const { scheduler, broker, process, comparesPositions } = options;
  const logFingerprint = new LogFingerprint();
  const ask = askerOf(options);
  const at = async (sequence: number) => {
    const found = await ask(`at`, () => broker.at(sequence));
    if (found !== null) logFingerprint.record(found.sequence, fingerprintOf(found));
    return found;
  };
  const holds = async (position: LogPosition, checkedAt: number) => {
    if (position.sequence === 0) return true;
    if (position.fingerprint === null || !comparesPositions) return position.sequence <= (await ask('log state', () => broker.last));
    const found = await ask('position', () => broker.at(position.sequence));
    if (found !== null) return hasFingerprint(found, position.fingerprint);
    return logFingerprint.confirms(position, checkedAt, async (sequence) => broker.at(sequence));
  };
  return {
    async append(partition, messageId, body) {
      if (publish === null) return ask(`append ${partition}`, () => broker.append(partition, messageId, body));
      const stored = await publish(subjectOf(addresses.commands, partition), messageId, body);
      if (!stored.duplicate) logFingerprint.record(stored.sequence, messageId);
      return stored;
    },
    read(partition, after, handler, { maxBatch = 128, onRestart = () => {} } = {}) {
      return new CommandReader({
        ...{ partition, after, maxBatch, handler, onRestart, log: silentLog },
        async findPosition(position, checkedAt) {
          const session = broker.session.signal;
          const check = logFingerprint.nextCheck();
          const isHere = await holds(position, checkedAt);
          if (!isHere) logFingerprint.restarted();
          scheduler.note(`${process.id}’s position in ${partition}, ${position.sequence}, is ${isHere ? 'here' : 'gone'}`);
          return { isHere, checkedAt: check, session };
        },
        // ModelFeed has the members of a feed that a reader uses.
        openFeed: async (reached, session) => {
          if (session.aborted) throw brokerLost();
          return new ModelFeed({ scheduler, broker, process, partition, reached }) as unknown as Feed;
        },
        record: (command) => logFingerprint.record(command.sequence, fingerprintOf(command)),
      });
    },
    at,
    lastOf: (partition) => ask(`last of ${partition}`, () => broker.lastOf(partition)),
    state: () => ask('log state', () => ({ created: broker.created, firstSequence: broker.first, lastSequence: broker.last })),
    async purge(below, standing) {
      const session = broker.session;
      if (standing !== undefined && !hasFingerprint(await at(standing.sequence), standing.fingerprint)) return;
      if (broker.session !== session) throw brokerLost();
      await ask('purge', () => broker.purge(below));
    },
  };
}

type Feed = Awaited<ReturnType<ConstructorParameters<typeof CommandReader>[0]['openFeed']>>;

interface FeedOptions {
  scheduler: Scheduler;
  broker: ModelBroker;
  process: Process;
  partition: number;
  reached: number;
}

/** The commands of a partition behind a sequence, as they are stored. */
class ModelFeed implements Follower {
  readonly process: Process;
  readonly partition: number;
  readonly #scheduler: Scheduler;
  readonly #broker: ModelBroker;
  readonly #key: string;
  #reached: number;
  #commands: StoredCommand[] = [];
  #isAsked = false;
  #onReceived: (() => void) | null = null;
  isBroken = false;

  constructor({ scheduler, broker, process, partition, reached }: FeedOptions) {
    this.#scheduler = scheduler;
    this.#broker = broker;
    this.process = process;
    this.partition = partition;
    this.#reached = reached;
    this.#key = broker.nextKey('feed');
    broker.followers.push(this);
    if (broker.lastOf(partition) > reached) this.wake();
  }

  dequeue(maxCommands: number): StoredCommand[] {
    return this.#commands.splice(0, maxCommands);
  }

  untilReceived(): Promise<void> {
    if (this.#commands.length > 0 || this.isBroken) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onReceived = resolve;
    });
  }

  async close(): Promise<void> {
    this.breakOff();
  }

  /** There is something to fetch; it is delivered at a later step, with all that was stored by then. */
  wake(): void {
    if (this.#isAsked || this.isBroken || this.#broker.isCutOff(this.process)) return;
    this.#isAsked = true;
    this.#scheduler.post(this.process, this.#key, `feed ${this.partition}`, () => {
      this.#isAsked = false;
      if (this.isBroken || this.#broker.isCutOff(this.process)) return;
      const found = this.#broker.behind(this.partition, this.#reached);
      for (const { sequence, messageId, body, storedAtMs } of found) this.#commands.push({ sequence, messageId, body, storedAtMs });
      this.#reached = found.at(-1)?.sequence ?? this.#reached;
      this.#scheduler.note(`feed ${this.partition} brings ${found.map(({ sequence }) => sequence).join(', ')}`);
      this.#notify();
    });
  }

  breakOff(): void {
    this.isBroken = true;
    const { followers } = this.#broker;
    const index = followers.indexOf(this);
    if (index >= 0) followers.splice(index, 1);
    if (this.#scheduler.current === this.process) this.#notify();
    else this.#scheduler.post(this.process, this.#key, `feed ${this.partition} broke`, () => this.#notify());
  }

  #notify(): void {
    this.#onReceived?.();
    this.#onReceived = null;
  }
}

function workQueueOf(options: BusOptions, publish: StoredPublish | null): WorkQueue {
  const { scheduler, broker, process } = options;
  const ask = askerOf(options);
  const itemOf = (item: QueuedItem, lease: number, ackWaitMs: number): WorkItem => {
    let isSettled = false;
    const once = async (label: string, settle: () => void) => {
      if (isSettled) return;
      isSettled = true;
      await ask(label, settle);
    };
    const { messageId, body, delivery, publishedAtMs } = item;
    return {
      ...{ messageId, body, deliveryCount: delivery, publishedAtMs },
      attempt: attemptOf(delivery, broker.nextTag()),
      ack: () => once('ack', () => broker.settle(item)),
      nak: (delayMs) => once('nak', () => broker.putOff(item, lease, delayMs)),
      term: () => once('term', () => broker.settle(item)),
      working: () =>
        ask('working', () => {
          if (!broker.extend(item, lease, ackWaitMs)) throw new SwitchyardError('bus.lease_lost', 'the item is leased to another process');
        }),
    };
  };
  const store: WorkQueue['publish'] =
    publish === null ? (kind, messageId, body, earlier) => ask(`publish ${kind}`, () => broker.publish(kind, messageId, body, earlier)) : itemStore(publish);
  const refusals = new Set<(messageId: string) => void>();
  const storeReports = new Set<(messageId: string) => void>();
  /** Of a consumer that has stored a dispatch of this process. */
  const onStored = (consumer: Process, messageId: string) => {
    if (broker.isCutOff(consumer) || broker.isCutOff(process)) return;
    scheduler.post(process, `stored for ${process.id}`, 'receives stored', () => {
      for (const report of storeReports) report(messageId);
    });
  };
  return {
    publish: store,
    consume(kind, { concurrency, ackWaitMs }, handler) {
      const consumer: Consumer = {
        ...{ process, kind, concurrency, ackWaitMs, inFlight: 0 },
        take: (item, lease) => consumer.begin(itemOf(item, lease, ackWaitMs)),
        begin(item) {
          consumer.inFlight += 1;
          handler(item)
            .catch(() => {})
            .finally(() => {
              consumer.inFlight -= 1;
            });
        },
        store: ({ messageId, body }, earlierDeliveries) => store(kind, messageId, body, earlierDeliveries),
      };
      broker.consumers.push(consumer);
      return {
        stop: async () => {
          broker.consumers = broker.consumers.filter((one) => one !== consumer);
        },
      };
    },
    dispatch(kind, messageId, bytes) {
      if (process.state === 'dead') return;
      const sent: Dispatched = { kind, messageId, body: textOfUtf8(bytes), publishedAtMs: Date.now() };
      broker.dispatched(messageId, sent.body);
      // What a process has sent when it is killed may still arrive.
      scheduler.post(broker.process, `sent by ${process.id}`, `receives what ${process.id} has sent`, () => {
        if (broker.isCutOff(process)) return;
        const consumers = broker.subscribers(kind);
        // A route between the broker's servers may lose it.
        if (scheduler.chance.oneIn(LOST_ONE_IN)) return;
        if (consumers.length > 0) return deliverDispatched(options, scheduler.chance.pick(consumers), sent, onStored);
        scheduler.post(process, `refusals of ${process.id}`, 'receives a refusal', () => {
          for (const refused of refusals) refused(messageId);
        });
      });
    },
    maxDispatchBytes,
    onRefused(handler) {
      refusals.add(handler);
      return { stop: async () => void refusals.delete(handler) };
    },
    onStored(handler) {
      storeReports.add(handler);
      return { stop: async () => void storeReports.delete(handler) };
    },
    earliestDispatchAtMs: 0,
    // The model loses its queue only together with its log.
    createdAtMs: async () => 0,
    onRestart: () => ({ stop: async () => {} }),
    depths: unused,
  };
}

interface Dispatched extends Pick<QueuedItem, 'kind' | 'messageId' | 'body'> {
  publishedAtMs: number;
}

/** As the driver does (work-consumer.ts): a process that was paused knows that what it reads may have been delivered since. */
function deliverDispatched(
  { scheduler, broker, ...options }: BusOptions,
  consumer: Consumer,
  dispatched: Dispatched,
  onStored: (consumer: Process, messageId: string) => void,
): void {
  const { process, ackWaitMs } = consumer;
  const sentAtMs = scheduler.nowMs;
  scheduler.post(process, `dispatches to ${process.id}`, 'receives a call', () => {
    if (!broker.consumers.includes(consumer)) return;
    const store = async (earlierDeliveries: number) => {
      await consumer.store(dispatched, earlierDeliveries);
      onStored(process, dispatched.messageId);
    };
    const ageMs = scheduler.nowMs - sentAtMs;
    if (ageMs >= dispatchedLeaseMs(ackWaitMs)) return;
    if (consumer.inFlight >= consumer.concurrency) return void store(0).catch(() => {});
    const ask = askerOf({ ...options, scheduler, broker, process });
    broker.deliverDispatched(consumer, dispatched);
    consumer.begin(
      dispatchedItem({
        ...{ ...dispatched, ackWaitMs, deliveredAt: performance.now() - ageMs, log: silentLog },
        assertOpen: () => {},
        confirmConnected: () => {
          const askedAtMs = performance.now();
          return ask('ping', () => askedAtMs);
        },
        store: () => store(1),
        stopping: new AbortController().signal,
      }),
    );
  });
}
