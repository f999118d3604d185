import { ToolFailure } from './tool-failure.ts';

/** A counting semaphore, FIFO. Its queue is bounded by the items in flight. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** @throws ToolFailure `stopped` when the signal is aborted before a slot is free */
  async withSlot<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#acquire(signal); // no fail point: waits
    try {
      return await work(); // no fail point: inside
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new ToolFailure('stopped', 'the call was cancelled');
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    // no fail point: waits
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(enter);
        signal.removeEventListener('abort', onAbort);
      };
      const enter = () => {
        leave();
        resolve();
      };
      const onAbort = () => {
        leave();
        reject(new ToolFailure('stopped', 'the call was cancelled'));
      };
      this.#waiting.add(enter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
