import type { CommandLog, StoredCommand, Subscription } from '#bus/bus.ts';
import type { PartitionClaim } from '../../store/port/partition-store.ts';
import type { DueTimer } from '../partitions/timers.ts';
import { HeldTimers } from './held-timers.ts';

/**
 * An entry to apply; void once the claim that it was read under is lost, even if the partition is acquired again.
 *
 * `start`: an accepted run that lost its command. `skip`: moves the cursor of a partition without commands to the log's end, so that the log can be
 * purged. `restart`: the log was replaced, sequences start anew.
 */
export type Entry = { claim: PartitionClaim } & (
  | { kind: 'command'; stored: StoredCommand }
  | { kind: 'timer'; key: string; command: string }
  | { kind: 'start'; command: string }
  | { kind: 'skip'; toSequence: number; fingerprint: string }
  | { kind: 'restart' }
);

type EntryContent = Entry extends infer Kind ? (Kind extends Entry ? Omit<Kind, 'claim'> : never) : never;

/** Reading pauses at so many waiting entries: the log is a durable, cheap queue. */
const MAX_WAITING = 512;

/** A partition's waiting entries in log order; timers go to the end, and behind the commands that stood in the log at the acquisition. */
export class Mailbox {
  readonly claim: PartitionClaim;
  readonly #entries: Entry[] = [];
  /** When each entry was added, by `performance.now()`. */
  readonly #since: number[] = [];
  readonly #onEntry: () => void;
  /** The search for lost starts finds waiting ones again. */
  readonly #starts = new Set<string>();
  /** Keys of the timers among the entries. */
  readonly #timers = new Set<string>();
  readonly #held: HeldTimers;
  #reader: Subscription | null = null;
  #lastSequence: number;
  #capacityWaiter: (() => void) | null = null;
  #closed = false;

  constructor(claim: PartitionClaim, onEntry: () => void) {
    this.claim = claim;
    this.#onEntry = onEntry;
    this.#lastSequence = claim.cursor;
    this.#held = new HeldTimers({
      partition: claim.partition,
      cursor: claim.cursor,
      onRelease: (timers) => {
        for (const timer of timers) this.#pushTimer(timer);
      },
      isReaderWaiting: () => this.#capacityWaiter !== null,
    });
  }

  /** @param logEnd the last sequence of the whole log, read before the partition was acquired */
  follow(log: CommandLog, logEnd: number): void {
    if (this.#closed) return;
    const { partition, cursor, cursorFingerprint } = this.claim;
    this.#reader = log.read(partition, { sequence: cursor, fingerprint: cursorFingerprint }, (commands) => this.#dequeue(commands), {
      onRestart: () => {
        this.#lastSequence = 0;
        this.#held.restarted();
        this.#push({ kind: 'restart' });
      },
    });
    this.#held.begin(log, logEnd);
  }

  get waiting(): number {
    return this.#entries.length;
  }

  /** 0 when empty. */
  get oldestAgeMs(): number {
    return this.#since[0] === undefined ? 0 : performance.now() - this.#since[0];
  }

  /** Bounded: a timer fires once each time it is armed. */
  fire(timer: DueTimer): void {
    if (!this.#closed && !this.#held.hold(timer)) this.#pushTimer(timer);
  }

  /** One that is held, or waits here, is applied no more: a command has armed it anew, or disarmed it. */
  disarm(key: string): void {
    this.#held.drop(key);
    if (!this.#timers.delete(key)) return;
    const at = this.#entries.findIndex((entry) => entry.kind === 'timer' && entry.key === key);
    this.#entries.splice(at, 1);
    this.#since.splice(at, 1);
  }

  start(command: string): void {
    if (this.#closed || this.#starts.has(command)) return;
    this.#starts.add(command);
    this.#push({ kind: 'start', command });
  }

  /** The partition has no unapplied command up to the sequence. */
  skipTo(toSequence: number, fingerprint: string): void {
    this.#push({ kind: 'skip', toSequence, fingerprint });
  }

  /** Removes the oldest entries, at most `count`. */
  dequeue(count: number): Entry[] {
    const dequeued = this.#entries.splice(0, count);
    this.#since.splice(0, count);
    for (const entry of dequeued) {
      if (entry.kind === 'start') this.#starts.delete(entry.command);
      else if (entry.kind === 'timer') this.#timers.delete(entry.key);
    }
    if (this.#entries.length < MAX_WAITING) this.#freeCapacity();
    return dequeued;
  }

  /** Waiting entries can still be dequeued. Timers that are held are the next owner's. */
  async stopReading(): Promise<void> {
    this.#held.end();
    this.#freeCapacity();
    const reader = this.#reader;
    this.#reader = null;
    await reader?.stop();
  }

  /** Drops all entries and accepts none: the log has them for the next owner. */
  async discard(): Promise<void> {
    this.#closed = true;
    this.#entries.length = 0;
    this.#since.length = 0;
    this.#starts.clear();
    this.#timers.clear();
    await this.stopReading();
  }

  #pushTimer({ key, command }: DueTimer): void {
    if (this.#closed) return;
    this.#timers.add(key);
    this.#push({ kind: 'timer', key, command });
  }

  #push(content: EntryContent): void {
    if (this.#closed) return;
    this.#entries.push({ claim: this.claim, ...content });
    this.#since.push(performance.now());
    this.#onEntry();
  }

  async #dequeue(commands: StoredCommand[]): Promise<void> {
    const nowMs = performance.now();
    for (const stored of commands) {
      // A reader may restart slightly earlier.
      if (this.#closed || stored.sequence <= this.#lastSequence) continue;
      this.#lastSequence = stored.sequence;
      this.#entries.push({ kind: 'command', stored, claim: this.claim });
      this.#since.push(nowMs);
    }
    this.#held.delivered(this.#lastSequence);
    this.#onEntry();
    if (this.#entries.length < MAX_WAITING || this.#reader === null) return;
    await new Promise<void>((resolve) => {
      this.#capacityWaiter = resolve;
    });
  }

  #freeCapacity(): void {
    this.#capacityWaiter?.();
    this.#capacityWaiter = null;
  }
}

/**
 * The oldest entries, an equal share per mailbox that is not empty.
 * @param first mailbox to begin with; incremented by the caller, so that no partition starves
 */
export function dequeueRoundRobin(mailboxes: readonly Mailbox[], { first, most }: { first: number; most: number }): Entry[] {
  const waiting = mailboxes.filter((mailbox) => mailbox.waiting > 0);
  const dequeued: Entry[] = [];
  for (let n = 0; n < waiting.length && dequeued.length < most; n += 1) {
    const share = Math.ceil((most - dequeued.length) / (waiting.length - n));
    dequeued.push(...(waiting[(first + n) % waiting.length] as Mailbox).dequeue(share));
  }
  return dequeued;
}
