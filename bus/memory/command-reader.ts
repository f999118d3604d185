import type { Log } from '#shared/telemetry/log.ts';
import type { LogPosition, StoredCommand, Subscription } from '../bus.ts';

/** Queue limits while the handler is busy; past one, reading continues from the table. */
const MAX_QUEUED_COMMANDS = 1_024;
const MAX_QUEUED_CHARACTERS = 8 * 1024 * 1024;
/** Back-off, doubled up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface CommandReaderOptions {
  partition: number;
  after: LogPosition;
  maxBatch: number;
  handler: (commands: StoredCommand[]) => Promise<void>;
  onRestart: () => void;
  /** Whether the position is of this log. Asked once: a table does not change under its reader. */
  contains(position: LogPosition): Promise<boolean>;
  /** The partition's last committed sequence, 0 for none. */
  lastOfPartition(): number;
  /** A page of commands in order; empty only when there are none. */
  readPage(afterSequence: number, limit: number): Promise<StoredCommand[]>;
  log: Log;
}

/**
 * Follows one partition from two sources in one order:
 *
 *   behind ──a page from the table reaches the partition's last command──▶ following: commands arrive by `deliver` at their commit
 *      ▲                                                                        │
 *      └────────────── the queue is full: `deliver` ignores the command ────────┘
 *
 * `#reached` is the last sequence read or queued. `deliver` queues a command only when the partition has none between it and `#reached`. Otherwise the
 * command stays in the table, `#reached` stays below the partition's last command, and the next read goes to the table. Commands delivered while a page that
 * contains them was read are at or below `#reached`, and are ignored.
 */
export class CommandReader implements Subscription {
  readonly #options: CommandReaderOptions;
  #reached: number;
  #queue: StoredCommand[] = [];
  #queuedCharacters = 0;
  #wake: (() => void) | null = null;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(options: CommandReaderOptions) {
    this.#options = options;
    this.#reached = options.after.sequence;
    this.#ended = this.#run();
  }

  /** Called for the partition's every command, in order, in the tick that learns of its commit. `previous` is the partition's sequence before it. */
  deliver(command: StoredCommand, previous: number): void {
    const full = this.#queue.length >= MAX_QUEUED_COMMANDS || this.#queuedCharacters >= MAX_QUEUED_CHARACTERS;
    if (command.sequence > this.#reached && previous <= this.#reached && !full) {
      this.#queue.push(command);
      this.#queuedCharacters += command.body.length;
      this.#reached = command.sequence;
    }
    this.#wake?.();
  }

  stop(): Promise<void> {
    this.#stop.abort();
    this.#wake?.();
    return this.#ended;
  }

  async #run(): Promise<void> {
    await this.#retrying('the position in the log could not be checked', () => this.#findPosition());
    while (!this.#stop.signal.aborted) {
      const batch = this.#queue.length > 0 ? this.#fromQueue() : await this.#fromTable();
      if (batch.length > 0) await this.#retrying('the handler of a partition failed', () => this.#options.handler(batch));
      else if (this.#queue.length === 0 && this.#reached >= this.#options.lastOfPartition()) await this.#woken();
    }
  }

  async #findPosition(): Promise<void> {
    if (await this.#options.contains(this.#options.after)) return;
    // What was delivered meanwhile is read from the table.
    this.#queue = [];
    this.#queuedCharacters = 0;
    this.#reached = 0;
    this.#options.onRestart();
  }

  #fromQueue(): StoredCommand[] {
    const batch = this.#queue.splice(0, this.#options.maxBatch);
    for (const { body } of batch) this.#queuedCharacters -= body.length;
    return batch;
  }

  async #fromTable(): Promise<StoredCommand[]> {
    const last = this.#options.lastOfPartition();
    if (this.#reached >= last) return [];
    let page: StoredCommand[] = [];
    await this.#retrying('a page of commands could not be read', async () => {
      page = await this.#options.readPage(this.#reached, this.#options.maxBatch);
    });
    if (this.#stop.signal.aborted) return [];
    // Empty: everything up to `last` has been purged since the query.
    this.#reached = Math.max(this.#reached, page.at(-1)?.sequence ?? last);
    return page;
  }

  /** Retries until success or stop. */
  async #retrying(failure: string, action: () => Promise<void>): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#stop.signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await action();
      } catch (error) {
        this.#options.log.error({ err: error, partition: this.#options.partition, reached: this.#reached, pause_ms: pauseMs }, failure);
        await this.#pause(pauseMs);
      }
    }
  }

  #pause(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#stop.signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, pauseMs).unref();
      this.#stop.signal.addEventListener('abort', end);
    });
  }

  /** Also resolves when the reader stops, as it may have by now. */
  #woken(): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null;
        resolve();
      };
    });
  }
}
