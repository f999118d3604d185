import { QueueingDelay, SAMPLE_INTERVAL_MS } from '#shared/admission.ts';
import type { WorkKind } from '../bus.ts';
import { workQueues } from '../work-queues.ts';
import { isStreamMissing } from './connection/broker-errors.ts';
import type { NatsLink } from './connection/link.ts';
import { type AdmissionStream, streams } from './streams.ts';

/** From here on no new work is admitted, so that results still fit. */
const CAPACITY_SHARE = 0.8;
const SAMPLE_BUDGET_MS = 2_000;

/** Capacity of the streams that results of work go to, and queueing delays. Answers from the last sample, and refreshes a stale one in the background. */
export class CapacityGauge {
  readonly #link: NatsLink;
  readonly #streams: readonly AdmissionStream[];
  readonly #queueingDelays = new Map<WorkKind, QueueingDelay>();
  #isBelowCapacity = true;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #sampling: Promise<void> | null = null;

  constructor(link: NatsLink, asked: readonly AdmissionStream[]) {
    this.#link = link;
    this.#streams = asked;
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
    const outcomes = await Promise.allSettled(this.#streams.map((stream) => this.#isStreamBelow(stream)));
    const areBelow = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    // A broker with the permissions of an earlier release refuses to describe some. Without any answer the last result stays.
    if (areBelow.length > 0) this.#isBelowCapacity = areBelow.every((isBelow) => isBelow);
  }

  async #isStreamBelow({ name, isDeclared }: AdmissionStream): Promise<boolean> {
    const link = this.#link;
    const info = await link.retries.callApi('describe a stream', SAMPLE_BUDGET_MS, async () => {
      try {
        return await link.manager.streams.info(name);
      } catch (error) {
        if (!isDeclared && isStreamMissing(error)) return null;
        throw error;
      }
    });
    return info === null || info.state.bytes < CAPACITY_SHARE * info.config.max_bytes;
  }

  /** Rejects without a consumer, before the first worker. */
  async #sampleQueue(kind: WorkKind, queueingDelay: QueueingDelay): Promise<void> {
    const info = await this.#link.retries.callApi('describe a consumer of work', SAMPLE_BUDGET_MS, () =>
      this.#link.manager.consumers.info(streams.work.name, workQueues[kind].consumer),
    );
    queueingDelay.sample({ atMs: performance.now(), waiting: info.num_pending, dequeued: info.delivered.consumer_seq });
  }
}
