import type { CommandLog, StoredCommand, Subscription } from '#bus/bus.ts';
import type { PartitionClaim } from './ownership.ts';
import type { DueTimer } from './timers.ts';

/** One thing to apply. `skip` moves the cursor of a partition without commands to where the log ends, so that the log can be purged. */
export type Entry =
  | { kind: 'command'; partition: number; stored: StoredCommand }
  | { kind: 'timer'; partition: number; key: string; command: string }
  | { kind: 'skip'; partition: number; toSequence: number };

/** Commands of one partition that wait for the commit in flight. Beyond this the log itself is the queue: it is durable and cheap. */
const MAX_WAITING = 512;

/** What waits to be applied in one partition, in the order of the log; timers queue up behind what is there. */
export class Mailbox {
  readonly claim: PartitionClaim;
  readonly #entries: Entry[] = [];
  readonly #onEntry: () => void;
  #reader: Subscription | null = null;
  #lastSequence: number;
  #roomWaiter: (() => void) | null = null;
  #closed = false;

  constructor(claim: PartitionClaim, onEntry: () => void) {
    this.claim = claim;
    this.#onEntry = onEntry;
    this.#lastSequence = claim.cursor;
  }

  follow(log: CommandLog): void {
    this.#reader = log.read(this.claim.partition, this.claim.cursor, (commands) => this.#take(commands));
  }

  get waiting(): number {
    return this.#entries.length;
  }

  fire(timer: DueTimer): void {
    this.#push({ kind: 'timer', ...timer });
  }

  /** Everything of this partition up to the sequence is applied: the cursor may move there. */
  skipTo(toSequence: number): void {
    this.#push({ kind: 'skip', partition: this.claim.partition, toSequence });
  }

  /** Takes the oldest entries out, at most `count`. */
  take(count: number): Entry[] {
    const taken = this.#entries.splice(0, count);
    if (this.#entries.length < MAX_WAITING) {
      this.#roomWaiter?.();
      this.#roomWaiter = null;
    }
    return taken;
  }

  /** Stops reading. What waits here can still be taken. */
  async stopReading(): Promise<void> {
    this.#roomWaiter?.();
    this.#roomWaiter = null;
    const reader = this.#reader;
    this.#reader = null;
    await reader?.stop();
  }

  /** The partition is another host's now: nothing of it is applied any more. */
  async abandon(): Promise<void> {
    this.#closed = true;
    this.#entries.length = 0;
    await this.stopReading();
  }

  #push(entry: Entry): void {
    if (this.#closed) return;
    this.#entries.push(entry);
    this.#onEntry();
  }

  async #take(commands: StoredCommand[]): Promise<void> {
    for (const stored of commands) {
      // A reader that lost its place may begin again a little earlier.
      if (this.#closed || stored.sequence <= this.#lastSequence) continue;
      this.#lastSequence = stored.sequence;
      this.#entries.push({ kind: 'command', partition: this.claim.partition, stored });
    }
    this.#onEntry();
    if (this.#entries.length < MAX_WAITING || this.#reader === null) return;
    await new Promise<void>((resolve) => {
      this.#roomWaiter = resolve;
    });
  }
}
