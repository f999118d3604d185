import type { CommandLog, StoredCommand, Subscription } from '#bus/bus.ts';
import type { PartitionClaim } from './ownership.ts';
import type { DueTimer } from './timers.ts';

/**
 * One thing to apply, under the claim it was read with: when the partition is lost meanwhile, and be it won again, the entry is void.
 *
 * `start`: a run that was accepted and whose command was lost. `skip` moves the cursor of a partition without commands to where the log
 * ends, so that the log can be purged. `restart`: the log is another one than before, and what follows has lower sequences.
 */
export type Entry = { claim: PartitionClaim } & (
  | { kind: 'command'; stored: StoredCommand }
  | { kind: 'timer'; key: string; command: string }
  | { kind: 'start'; command: string }
  | { kind: 'skip'; toSequence: number; fingerprint: string }
  | { kind: 'restart' }
);

type EntryContent = Entry extends infer Kind ? (Kind extends Entry ? Omit<Kind, 'claim'> : never) : never;

/** Commands of one partition that wait for the commit in flight. Beyond this the log itself is the queue: it is durable and cheap. */
const MAX_WAITING = 512;

/** What waits to be applied in one partition, in the order of the log; timers queue up behind what is there. */
export class Mailbox {
  readonly claim: PartitionClaim;
  readonly #entries: Entry[] = [];
  /** Since when each of them waits, by `performance.now()`. */
  readonly #since: number[] = [];
  readonly #onEntry: () => void;
  /** Starts that wait here. They are looked for every few seconds, and may wait for longer. */
  readonly #starts = new Set<string>();
  #reader: Subscription | null = null;
  #lastSequence: number;
  #capacityWaiter: (() => void) | null = null;
  #closed = false;

  constructor(claim: PartitionClaim, onEntry: () => void) {
    this.claim = claim;
    this.#onEntry = onEntry;
    this.#lastSequence = claim.cursor;
  }

  follow(log: CommandLog): void {
    if (this.#closed) return;
    const { partition, cursor, cursorFingerprint } = this.claim;
    this.#reader = log.read(partition, { sequence: cursor, fingerprint: cursorFingerprint }, (commands) => this.#dequeue(commands), {
      onRestart: () => {
        this.#lastSequence = 0;
        this.#push({ kind: 'restart' });
      },
    });
  }

  get waiting(): number {
    return this.#entries.length;
  }

  /** How long the oldest entry has waited here; 0 when none does. */
  get oldestAgeMs(): number {
    return this.#since[0] === undefined ? 0 : performance.now() - this.#since[0];
  }

  /** A timer is handed on once for each time that it is armed, so no more wait here than the partition has armed. */
  fire({ key, command }: DueTimer): void {
    this.#push({ kind: 'timer', key, command });
  }

  /** Takes a start in that does not wait here already. */
  start(command: string): void {
    if (this.#closed || this.#starts.has(command)) return;
    this.#starts.add(command);
    this.#push({ kind: 'start', command });
  }

  /** Everything of this partition up to the sequence is applied: the cursor may move there. */
  skipTo(toSequence: number, fingerprint: string): void {
    this.#push({ kind: 'skip', toSequence, fingerprint });
  }

  /** Takes the oldest entries out, at most `count`. */
  dequeue(count: number): Entry[] {
    const dequeued = this.#entries.splice(0, count);
    this.#since.splice(0, count);
    for (const entry of dequeued) if (entry.kind === 'start') this.#starts.delete(entry.command);
    if (this.#entries.length < MAX_WAITING) this.#freeCapacity();
    return dequeued;
  }

  /** Stops reading. What waits here can still be taken. */
  async stopReading(): Promise<void> {
    this.#freeCapacity();
    const reader = this.#reader;
    this.#reader = null;
    await reader?.stop();
  }

  /** Nothing that waits here is applied any more, and nothing new is taken in: the log has it for the partition's next owner. */
  async discard(): Promise<void> {
    this.#closed = true;
    this.#entries.length = 0;
    this.#since.length = 0;
    this.#starts.clear();
    await this.stopReading();
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
      // A reader that lost its place may begin again a little earlier.
      if (this.#closed || stored.sequence <= this.#lastSequence) continue;
      this.#lastSequence = stored.sequence;
      this.#entries.push({ kind: 'command', stored, claim: this.claim });
      this.#since.push(nowMs);
    }
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
 * The oldest entries of all mailboxes together, an equal share for each that has something waiting.
 * @param first whose turn it is, counted on by who asks: so no partition starves
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
