import type { Log } from '#shared/telemetry/log.ts';
import type { LogPosition, StoredCommand, Subscription } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { fingerprintOf } from '../../position-fingerprint.ts';
import type { CommandFeed } from './command-feed.ts';

/** Back-off, doubled up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface CommandReaderOptions {
  partition: number;
  after: LogPosition;
  maxBatch: number;
  handler: (commands: StoredCommand[]) => Promise<void>;
  onRestart: () => void;
  /** Waits for the broker, then checks whether the position is of the current log. `checkedAt`: what the last check returned, 0 at first. */
  findPosition(position: LogPosition, checkedAt: number, until: AbortSignal): Promise<{ isHere: boolean; checkedAt: number; session: AbortSignal }>;
  openFeed(after: number, session: AbortSignal, until: AbortSignal): Promise<CommandFeed>;
  record(command: StoredCommand): void;
  log: Log;
}

/**
 * Follows one partition:   finding ──the position is valid, or the log begins anew──▶ following ──the feed breaks──▶ finding
 *
 * The position is the last processed command. What a broken feed has fetched beyond it is dropped: the next feed may be of another log.
 */
export class CommandReader implements Subscription {
  readonly #options: CommandReaderOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #position: LogPosition;
  #checkedAt = 0;
  #feed: CommandFeed | null = null;

  constructor(options: CommandReaderOptions) {
    this.#options = options;
    this.#position = options.after;
    this.#ended = this.#run();
  }

  stop(): Promise<void> {
    this.#stop.abort();
    void this.#feed?.close();
    return this.#ended;
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#isStopped) {
      try {
        this.#feed = await this.#find();
        pauseMs = FIRST_PAUSE_MS;
        await this.#follow(this.#feed);
      } catch (error) {
        if (this.#isStopped) break;
        const { partition, log } = this.#options;
        log.warn({ err: error, partition, sequence: this.#position.sequence, pause_ms: pauseMs }, 'a partition can not be read yet');
        await pauseFor(pauseMs, this.#stop.signal);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      } finally {
        await this.#feed?.close();
        this.#feed = null;
      }
    }
  }

  async #find(): Promise<CommandFeed> {
    const { partition, findPosition, openFeed, onRestart, log } = this.#options;
    const { isHere, checkedAt, session } = await findPosition(this.#position, this.#checkedAt, this.#stop.signal);
    this.#checkedAt = checkedAt;
    if (!isHere) {
      log.warn({ partition, sequence: this.#position.sequence }, 'the command log is not the one that was read: reading begins at its first command');
      onRestart();
      this.#position = { sequence: 0, fingerprint: null };
    }
    return openFeed(this.#position.sequence, session, this.#stop.signal);
  }

  async #follow(feed: CommandFeed): Promise<void> {
    while (!this.#isStopped && !feed.isBroken) {
      const batch = feed.dequeue(this.#options.maxBatch);
      if (batch.length > 0) await this.#deliver(batch, feed);
      else await feed.untilReceived();
    }
  }

  /** Redelivers a batch until accepted, or until the feed breaks: then it may be of a lost log. */
  async #deliver(batch: StoredCommand[], feed: CommandFeed): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#isStopped && !feed.isBroken; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.#options.handler(batch);
        const last = batch.at(-1);
        if (last !== undefined) {
          this.#position = { sequence: last.sequence, fingerprint: fingerprintOf(last) };
          this.#options.record(last);
        }
        return;
      } catch (error) {
        const { partition, log } = this.#options;
        log.error({ err: error, partition, sequence: batch[0]?.sequence, pause_ms: pauseMs }, 'the handler of a partition failed');
        await pauseFor(pauseMs, this.#stop.signal);
      }
    }
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }
}
