import type { ModelBroker } from '../model-broker.ts';
import type { Scheduler } from '../scheduler.ts';
import { type ClusterCounts, ModelStream, type StreamStore } from './model-stream.ts';

/** Of nats-server: before and since an id in process is answered with an error (docs/adr/0134). */
const VERSIONS = ['2.10.27', '2.12.1'] as const;
/** Until the others elect, and until the loss of a leader is noticed: at once, where its connections are closed. */
const ELECTED_MS = [1, 200, 1_500];
const SILENT_MS = [0, 0, 1_500, 3_500];
const LEADERLESS_MS = [500, 2_000, 6_000];
/** The longest outlasts what a publisher waits before it takes a message for lost. */
const SLOW_MS = [300, 1_200, 2_500, 5_000];

export interface ClusterOptions {
  scheduler: Scheduler;
  broker: ModelBroker;
  /** Three servers, with replicas of each stream; or one. */
  isCluster: boolean;
  /** By the first token of their subjects. */
  stores: Readonly<Record<string, StreamStore>>;
  breach(rule: string, what: string): void;
}

/** The servers of the broker, as those see them that publish to its streams. */
export class ModelCluster {
  readonly #scheduler: Scheduler;
  readonly isCluster: boolean;
  readonly version: string;
  readonly counts: ClusterCounts = { noResponders: 0, inProcess: 0, dropped: 0, storedAgain: 0 };
  readonly #streams: ReadonlyMap<string, ModelStream>;

  constructor({ scheduler, broker, isCluster, stores, breach }: ClusterOptions) {
    this.#scheduler = scheduler;
    this.isCluster = isCluster;
    const isNewer = scheduler.chance.oneIn(3);
    this.version = VERSIONS[isNewer ? 1 : 0];
    const { counts } = this;
    const streamOf = (store: StreamStore) => new ModelStream({ scheduler, broker: broker.process, store, isNewer, counts, breach });
    this.#streams = new Map(Object.entries(stores).map(([name, store]) => [name, streamOf(store)]));
  }

  /** @throws TypeError there is none */
  streamOf(subject: string): ModelStream {
    const stream = this.#streams.get(subject.slice(0, subject.indexOf('.')));
    if (stream === undefined) throw new TypeError(`no stream has ${subject}`);
    return stream;
  }

  /** A server is lost. Of the streams that it has led each elects a leader. */
  loseServer(): void {
    const { chance } = this.#scheduler;
    for (const stream of this.#streams.values()) {
      if (chance.oneIn(3)) continue;
      stream.lose({ electedMs: chance.pick(ELECTED_MS), silentMs: chance.pick(SILENT_MS), leaderlessMs: chance.pick(LEADERLESS_MS) });
    }
  }

  /** The leaders answer late. */
  beSlow(): void {
    const { chance } = this.#scheduler;
    for (const stream of this.#streams.values()) if (!chance.oneIn(3)) stream.beSlow(chance.pick(SLOW_MS));
  }

  /** Each stream has a leader, which is not slow. */
  recover(): void {
    for (const stream of this.#streams.values()) stream.recover();
  }

  /** All servers have started again. */
  restart(): void {
    for (const stream of this.#streams.values()) stream.restart();
  }
}
