import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Rows of one statement: past a few hundred the cost per row no longer falls, and each statement holds up the event loop. */
const MAX_BATCH_ITEMS = 512;
/** Bytes of one statement. Bodies are at most 512 KiB, so eight of the largest fit. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** What may wait for its statement; at some 20,000 rows a second this is one second of work. More is refused. */
const MAX_WAITING_ITEMS = 20_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export interface GroupCommitOptions<Item> {
  /** Writes a batch in one statement, and tells this process what the commit changed. What it throws, every caller in the batch gets. */
  flush(items: Item[]): Promise<void>;
  /** Bytes that the item adds to its statement. */
  sizeOf(item: Item): number;
}

interface Waiting<Item> {
  item: Item;
  sizeBytes: number;
  resolve(): void;
  reject(reason: unknown): void;
}

/**
 * Writes many small things in few statements: while one statement is in flight, what arrives collects for the next. No timer
 * is involved, so a lone caller pays for its own statement only. Batches keep the order of `add` and never overlap.
 */
export class GroupCommit<Item> {
  readonly #options: GroupCommitOptions<Item>;
  #waiting: Waiting<Item>[] = [];
  #waitingBytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: GroupCommitOptions<Item>) {
    this.#options = options;
  }

  /** @throws `bus.full` when too much waits already. For callers that bring something new; who settles something adds regardless. */
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
      // One microtask later, so that what the same turn of the event loop adds goes into the same statement.
      this.#running ??= Promise.resolve().then(() => this.#run());
    });
  }

  /** Resolves when nothing waits and nothing is in flight. */
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
