import type { WorkItem } from '../../bus.ts';

interface WaitingLeaseTimes {
  /** The earliest possible delivery, by `performance.now()`. */
  deliveredAt: number;
  ackWaitMs: number;
}

/** Extends the lease of a queued item that waits to begin, at each half of it, until stopped. A lease that can't be extended is not tried again. */
export class WaitingLease {
  readonly #item: Pick<WorkItem, 'working'>;
  readonly #ackWaitMs: number;
  #extendedAt: number;
  #timer: NodeJS.Timeout;
  #isStopped = false;

  constructor(item: Pick<WorkItem, 'working'>, { deliveredAt, ackWaitMs }: WaitingLeaseTimes) {
    this.#item = item;
    this.#ackWaitMs = ackWaitMs;
    this.#extendedAt = deliveredAt;
    this.#timer = this.#atHalf();
  }

  /** Milliseconds since the delivery, or since the last extension was requested. */
  get ageMs(): number {
    return performance.now() - this.#extendedAt;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #atHalf(): NodeJS.Timeout {
    return setTimeout(() => this.#extend(), Math.max(0, this.#ackWaitMs / 2 - this.ageMs)).unref();
  }

  #extend(): void {
    const sentAt = performance.now();
    this.#item.working().then(
      () => {
        this.#extendedAt = sentAt;
        if (!this.#isStopped) this.#timer = this.#atHalf();
      },
      () => {},
    );
  }
}
