import { QueueingDelay, SAMPLE_INTERVAL_MS } from '#shared/admission.ts';
import type { WorkKind } from '../bus.ts';
import { workQueues } from '../work-queues.ts';
import type { NatsLink } from './connection/link.ts';
import { streams } from './streams.ts';

/** From here on no new work is admitted, so that results still fit. */
const CAPACITY_SHARE = 0.8;
const SAMPLE_BUDGET_MS = 2_000;

/** Capacity of the command and work streams, and queueing delays. Answers from the last sample, and refreshes a stale one in the background. */
export class CapacityGauge {
  readonly #link: NatsLink;
  /** The streams that this process may ask about. */
  readonly #names: readonly string[];
  readonly #queueingDelays = new Map<WorkKind, QueueingDelay>();
  #isBelowCapacity = true;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #sampling: Promise<void> | null = null;

  constructor(link: NatsLink, names: readonly string[]) {
    this.#link = link;
    this.#names = names.filter((name) => name === streams.commands.name || name === streams.work.name);
  }

  /** @param kind what the admitted work becomes */
  hasCapacity(kind?: WorkKind): boolean {
    const queueingDelay = kind === undefined ? null : this.#queueingDelayOf(kind);
    if (performance.now() - this.#sampledAt > SAMPLE_INTERVAL_MS) void this.sample();
    return this.#isBelowCapacity && (queueingDelay === null || queueingDelay.admits(performance.now()));
  }

  /** A store was just refused for lack of space. */
  markFull(): void {
    this.#isBelowCapacity = false;
    this.#sampledAt = performance.now();
  }

  /** Never rejects: while the broker is away the last result stays. */
  sample(): Promise<void> {
    this.#sampling ??= Promise.allSettled([
      this.#sampleStreams(),
      ...[...this.#queueingDelays].map(([kind, queueingDelay]) => this.#sampleQueue(kind, queueingDelay)),
    ])
      .then(() => {})
      .finally(() => {
        this.#sampledAt = performance.now();
        this.#sampling = null;
      });
    return this.#sampling;
  }

  #queueingDelayOf(kind: WorkKind): QueueingDelay {
    const known = this.#queueingDelays.get(kind);
    if (known !== undefined) return known;
    const fresh = new QueueingDelay();
    this.#queueingDelays.set(kind, fresh);
    return fresh;
  }

  async #sampleStreams(): Promise<void> {
    const infos = await Promise.all(
      this.#names.map((name) => this.#link.retryWhileTransient('describe a stream', SAMPLE_BUDGET_MS, () => this.#link.manager.streams.info(name))),
    );
    this.#isBelowCapacity = infos.every(({ config, state }) => state.bytes < CAPACITY_SHARE * config.max_bytes);
  }

  /** Rejects without a consumer, before the first worker. */
  async #sampleQueue(kind: WorkKind, queueingDelay: QueueingDelay): Promise<void> {
    const info = await this.#link.retryWhileTransient('describe a consumer of work', SAMPLE_BUDGET_MS, () =>
      this.#link.manager.consumers.info(streams.work.name, workQueues[kind].consumer),
    );
    queueingDelay.sample({ atMs: performance.now(), waiting: info.num_pending, dequeued: info.delivered.consumer_seq });
  }
}
