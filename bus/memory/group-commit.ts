import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Past a few hundred rows the cost per row no longer falls, and each statement blocks the event loop. */
const MAX_BATCH_ITEMS = 512;
/** Bodies are at most 512 KiB, so eight of the largest fit. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** One second at some 20,000 rows a second. More are refused. */
const MAX_WAITING_ITEMS = 20_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export interface GroupCommitOptions<Item> {
  /** Writes a batch in one statement, then updates memory. An error rejects the whole batch. */
  flush(items: Item[]): Promise<void>;
  sizeOf(item: Item): number;
}

interface Waiting<Item> {
  item: Item;
  sizeBytes: number;
  resolve(): void;
  reject(reason: unknown): void;
}

/**
 * Group commit: what arrives while a statement is in flight becomes the next one. Without a timer, a lone caller waits for its own statement only. Batches
 * keep the order of `add` and never overlap.
 */
export class GroupCommit<Item> {
  readonly #options: GroupCommitOptions<Item>;
  #waiting: Waiting<Item>[] = [];
  #waitingBytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: GroupCommitOptions<Item>) {
    this.#options = options;
  }

  /** For new entries; settling skips the check. @throws `bus.full` */
  assertCapacity(): void {
    if (this.#waiting.length < MAX_WAITING_ITEMS && this.#waitingBytes < MAX_WAITING_BYTES) return;
    throw new SwitchyardError('bus.full', 'too much waits to be stored', { details: { waiting: this.#waiting.length } });
  }

  /** Resolves once the item is committed. */
  add(item: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      const sizeBytes = this.#options.sizeOf(item);
      this.#waiting.push({ item, sizeBytes, resolve, reject });
      this.#waitingBytes += sizeBytes;
      // A microtask later: one statement for all of this tick's synchronous adds.
      this.#running ??= Promise.resolve().then(() => this.#run());
    });
  }

  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#dequeue();
      try {
        await this.#options.flush(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = null;
  }

  #dequeue(): Waiting<Item>[] {
    let count = 0;
    let bytes = 0;
    for (const { sizeBytes } of this.#waiting) {
      if (count > 0 && (count >= MAX_BATCH_ITEMS || bytes + sizeBytes > MAX_BATCH_BYTES)) break;
      count += 1;
      bytes += sizeBytes;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }
}
