import type { CommandLog } from '#bus/bus.ts';
import { pauseFor } from '#bus/pause.ts';
import type { DueTimer } from '../partitions/timers.ts';

/** A reader that has delivered nothing for so long has no broker, or nothing left to deliver: timers wait for it no longer. */
const SILENT_MS = 10_000;
/** After a look-up that failed. */
const ASK_AGAIN_MS = 500;

export interface HeldTimersOptions {
  partition: number;
  /** The last sequence that was applied before. */
  cursor: number;
  /** The timers in the order in which they came due. Called once. */
  onRelease(timers: readonly DueTimer[]): void;
  /** Whether the reader waits for this host, and not for its broker. */
  isReaderWaiting(): boolean;
}

/**
 * Timers of an acquired partition that come due before its reader has delivered the commands that stood in the log: the results of what they end may be
 * among these. They are held until the partition's last command, as of the first of them, is delivered. Costs nothing where none is due (ADR 169).
 */
export class HeldTimers {
  readonly #options: HeldTimersOptions;
  readonly #isOver = new AbortController();
  #timers: DueTimer[] = [];
  /** Null until the reader begins. */
  #log: CommandLog | null = null;
  /** Of the whole log at the acquisition: past it, the reader is up to date. */
  #logEnd = Number.POSITIVE_INFINITY;
  #reached: number;
  /** The partition's last command. Null: not known. */
  #untilSequence: number | null = null;
  /** Of another log another command is the last. */
  #logs = 0;
  #silence: NodeJS.Timeout | null = null;

  constructor(options: HeldTimersOptions) {
    this.#options = options;
    this.#reached = options.cursor;
  }

  /** @param logEnd the last sequence of the whole log, read before the partition was acquired */
  begin(log: CommandLog, logEnd: number): void {
    this.#log = log;
    this.#logEnd = logEnd;
    if (this.#timers.length > 0) this.#waitFor(log);
  }

  /** @returns false: the timer need not wait */
  hold(timer: DueTimer): boolean {
    if (this.#log !== null && this.#reached >= this.#logEnd) this.end();
    if (this.#isOver.signal.aborted) return false;
    this.#timers.push(timer);
    if (this.#log !== null) this.#waitFor(this.#log);
    return true;
  }

  /** A command has armed the timer anew, or needs it no more. */
  drop(key: string): void {
    if (this.#timers.length > 0) this.#timers = this.#timers.filter((timer) => timer.key !== key);
  }

  /** All commands up to there are in the mailbox. */
  delivered(sequence: number): void {
    if (this.#isOver.signal.aborted) return;
    this.#reached = sequence;
    if (this.#silence !== null) this.#waitForSilence();
    this.#releaseIfReached();
  }

  /** Another log is read, from its first command. */
  restarted(): void {
    this.#reached = 0;
    this.#logEnd = Number.POSITIVE_INFINITY;
    this.#untilSequence = null;
    this.#logs += 1;
    if (this.#silence !== null && this.#log !== null) void this.#findLast(this.#log);
  }

  /** Drops what is held. Later timers wait no more. */
  end(): void {
    this.#isOver.abort();
    this.#timers = [];
    if (this.#silence !== null) clearTimeout(this.#silence);
    this.#silence = null;
  }

  #waitFor(log: CommandLog): void {
    if (this.#silence !== null) return;
    this.#waitForSilence();
    void this.#findLast(log);
  }

  /** Never rejects. */
  async #findLast(log: CommandLog): Promise<void> {
    const { signal } = this.#isOver;
    const of = this.#logs;
    while (!signal.aborted && of === this.#logs && this.#untilSequence === null) {
      try {
        const last = await log.lastOf(this.#options.partition);
        if (of !== this.#logs) return;
        this.#untilSequence = last;
        this.#releaseIfReached();
      } catch {
        await pauseFor(ASK_AGAIN_MS, signal);
      }
    }
  }

  /** In two parts, and behind the sockets: after a pause of this process they have first to be read. */
  #waitForSilence(parts = 2): void {
    if (this.#silence !== null) clearTimeout(this.#silence);
    const timer = setTimeout(() => {
      if (parts > 1) this.#waitForSilence(parts - 1);
      else setImmediate(() => this.#silence === timer && this.#onSilence());
    }, SILENT_MS / 2);
    this.#silence = timer;
  }

  #onSilence(): void {
    if (this.#options.isReaderWaiting()) this.#waitForSilence();
    else this.#release();
  }

  #releaseIfReached(): void {
    if (this.#reached >= (this.#untilSequence ?? this.#logEnd)) this.#release();
  }

  #release(): void {
    if (this.#isOver.signal.aborted) return;
    const timers = this.#timers;
    this.end();
    this.#options.onRelease(timers);
  }
}
