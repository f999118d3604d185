import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { LogPosition, StoredCommand, Subscription } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { fingerprintOf } from '../../position-fingerprint.ts';
import type { CommandFeed } from './command-feed.ts';

/** Back-off, doubled up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** A feed that is not open after this waits for an election, or for a server that is lost. */
const WITHOUT_FEED_AFTER_MS = 250;
/** Without a feed the log is asked this often for a next command. */
const LOOK_AGAIN_MS = 250;

export interface CommandReaderOptions {
  partition: number;
  after: LogPosition;
  maxBatch: number;
  handler: (commands: StoredCommand[]) => Promise<void>;
  onRestart: () => void;
  /** Waits for the broker, then checks whether the position is of the current log. `checkedAt`: what the last check returned, 0 at first. */
  findPosition(position: LogPosition, checkedAt: number, until: AbortSignal): Promise<{ isHere: boolean; checkedAt: number; session: AbortSignal }>;
  /** Rejects when `until` aborts: the session has ended, or the feed is no longer wanted. */
  openFeed(after: number, session: AbortSignal, until: AbortSignal): Promise<CommandFeed>;
  /** The first command behind a sequence, from the log's leader; null: there is none. Absent: commands come from feeds only. */
  next?: (after: number, until: AbortSignal) => Promise<StoredCommand | null>;
  record(command: StoredCommand): void;
  log: Log;
}

/**
 * Follows one partition:   finding ──the position is valid, or the log begins anew──▶ following ──the feed breaks──▶ finding
 *
 * The position is the last processed command. What a broken feed has fetched beyond it is dropped: the next feed may be of another log.
 *
 * A feed needs a consumer, which the leader of a whole cluster places at one of its servers. While it is elected, or has placed the consumer at a server that
 * is lost, commands are read from the log one by one: that needs the leader of its stream alone.
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
    const { partition, findPosition, openFeed, onRestart, next, log } = this.#options;
    const { isHere, checkedAt, session } = await findPosition(this.#position, this.#checkedAt, this.#stop.signal);
    this.#checkedAt = checkedAt;
    if (!isHere) {
      log.warn({ partition, sequence: this.#position.sequence }, 'the command log is not the one that was read: reading begins at its first command');
      onRestart();
      this.#position = { sequence: 0, fingerprint: null };
    }
    const wanted = new AbortController();
    const onStop = () => wanted.abort(this.#stop.signal.reason);
    const onLost = () => wanted.abort(new SwitchyardError('service.unreachable', 'the connection was lost while a reader began'));
    this.#stop.signal.addEventListener('abort', onStop);
    session.addEventListener('abort', onLost);
    if (this.#isStopped) onStop();
    if (session.aborted) onLost();
    try {
      const opening = openFeed(this.#position.sequence, session, wanted.signal);
      if (next !== undefined) await this.#readUntil(opening, session, next);
      return await opening;
    } finally {
      this.#stop.signal.removeEventListener('abort', onStop);
      session.removeEventListener('abort', onLost);
    }
  }

  /** Resolves when `opening` is settled, as it is soon after the connection is lost. */
  async #readUntil(opening: Promise<CommandFeed>, session: AbortSignal, next: NonNullable<CommandReaderOptions['next']>): Promise<void> {
    const over = new AbortController();
    const settled = opening.then(
      () => over.abort(),
      () => over.abort(),
    );
    const isOver = () => over.signal.aborted || this.#isStopped || session.aborted;
    await pauseFor(WITHOUT_FEED_AFTER_MS, over.signal);
    while (!isOver()) {
      const command = await next(this.#position.sequence, over.signal).catch(() => null);
      if (isOver()) break;
      if (command === null) await pauseFor(LOOK_AGAIN_MS, over.signal);
      else await this.#deliver([command], () => this.#isStopped || session.aborted);
    }
    await settled;
  }

  async #follow(feed: CommandFeed): Promise<void> {
    while (!this.#isStopped && !feed.isBroken) {
      // What was read before the feed was open is delivered by it as well.
      const batch = feed.dequeue(this.#options.maxBatch).filter(({ sequence }) => sequence > this.#position.sequence);
      if (batch.length > 0) await this.#deliver(batch, () => this.#isStopped || feed.isBroken);
      else await feed.untilReceived();
    }
  }

  /** Redelivers a batch until accepted. @param isOver whether it may be of a lost log, or nothing more is wanted */
  async #deliver(batch: StoredCommand[], isOver: () => boolean): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !isOver(); pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
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
