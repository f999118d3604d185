import { isCommit } from '#actors/runtime/commit-statement.ts';
import type { Database } from '#shared/storage/database.ts';

/**
 * What happens to the next commits: the connection breaks before or after the statement was carried out, or long before it is (`late`),
 * the host dies there, or it falls asleep there until it is woken.
 */
export type CommitFault = 'before' | 'after' | 'late' | 'die-before' | 'die-after' | 'sleep';

/** After the host's first look at what became of a commit, and about when it tries again. */
const LATE_MS = 55;

/** The way to the database of one host, which can be cut, held up, and lose single commits. */
export class FaultyLink {
  readonly #faults: CommitFault[];
  readonly #gate = new Gate();
  readonly #late = new Set<Promise<unknown>>();
  #isCut = false;
  #isRefused = false;
  #isSnapshotRequested = false;

  constructor(faults: CommitFault[]) {
    this.#faults = faults;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether the host has sent a read of snapshots, which it does for each command of a session that it does not know. */
  get isSnapshotRequested(): boolean {
    return this.#isSnapshotRequested;
  }

  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    this.#isCut = false;
  }

  /** Nothing passes, and there is no use in trying again. */
  refuse(): void {
    this.#isRefused = true;
  }

  /** Every statement that was held back has been carried out. */
  async settled(): Promise<void> {
    await Promise.all(this.#late);
  }

  pause(): void {
    this.#gate.shut();
  }

  wake(): void {
    this.#gate.open();
  }

  over(database: Database): Database {
    return {
      transaction: async (work) => {
        await this.#pass();
        return database.transaction(work);
      },
      close: () => database.close(),
      query: async (statement, parameters) => {
        this.#isSnapshotRequested ||= / from sessions\b/.test(typeof statement === 'string' ? statement : statement.text);
        await this.#pass();
        const fault = isCommit(statement) ? this.#faults.shift() : undefined;
        if (fault === 'sleep') {
          this.pause();
          await this.#pass();
        }
        if (fault === 'late') this.#executeLate(() => database.query(statement, parameters));
        if (fault === 'die-before') this.cut();
        if (fault === 'before' || fault === 'late' || fault === 'die-before') throw lost();
        const result = await database.query<never>(statement, parameters);
        if (fault === 'die-after') this.cut();
        if (fault === 'after' || fault === 'die-after') throw lost();
        return result;
      },
    };
  }

  /** As a server does that has the statement in hand when the connection breaks: the host looks, finds nothing, and tries again meanwhile. */
  #executeLate(statement: () => Promise<unknown>): void {
    const late: Promise<unknown> = new Promise((resolve) => setTimeout(resolve, LATE_MS))
      .then(statement)
      .catch(() => {})
      .finally(() => this.#late.delete(late));
    this.#late.add(late);
  }

  async #pass(): Promise<void> {
    await this.#gate.pass();
    if (this.#isRefused) throw new Error('the host is gone');
    if (this.#isCut) throw lost();
  }
}

function lost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
}

/** Whoever comes while it is shut waits until it is opened. */
export class Gate {
  #held: { released: Promise<void>; release(): void } | null = null;

  shut(): void {
    // Who waits already waits for the one that is held: a second must not take its place.
    if (this.#held !== null) return;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = { released, release };
  }

  open(): void {
    this.#held?.release();
    this.#held = null;
  }

  async pass(): Promise<void> {
    await this.#held?.released;
  }
}
